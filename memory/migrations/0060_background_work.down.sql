DROP INDEX fact_freshness_in_background;
DROP TABLE reindexing;
