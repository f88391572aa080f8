DROP TABLE witness_standing;
