DROP TABLE anchor;
DROP TABLE checkpoint;
DROP TABLE seal_leaf;
DROP FUNCTION seal_leaf_continues_log();
