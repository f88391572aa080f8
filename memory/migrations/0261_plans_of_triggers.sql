-- As in 0230: a plan that a session made while the tables were empty reads them whole for each row that comes later.
ALTER FUNCTION fact_is_not_held() SET enable_seqscan = off;
ALTER FUNCTION fact_revision_continues_fact() SET enable_seqscan = off;
ALTER FUNCTION fact_takes_its_search_rows_along() SET enable_seqscan = off;
ALTER FUNCTION new_fact_meets_no_erasure() SET enable_seqscan = off;
ALTER FUNCTION record_value_held_is_sealed() SET enable_seqscan = off;
ALTER FUNCTION record_value_is_of_what_has_one() SET enable_seqscan = off;
ALTER FUNCTION memory_record_keeps_its_past() SET enable_seqscan = off;
ALTER FUNCTION search_row_says_what_its_fact_says() SET enable_seqscan = off;
