DROP TABLE log_entry;
DROP FUNCTION log_entry_append_only();
DROP FUNCTION log_entry_continues_chain();
DROP TABLE run_head;
DROP FUNCTION run_head_moves_forward();
