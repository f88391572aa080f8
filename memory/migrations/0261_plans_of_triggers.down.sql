ALTER FUNCTION fact_is_not_held() RESET enable_seqscan;
ALTER FUNCTION fact_revision_continues_fact() RESET enable_seqscan;
ALTER FUNCTION fact_takes_its_search_rows_along() RESET enable_seqscan;
ALTER FUNCTION new_fact_meets_no_erasure() RESET enable_seqscan;
ALTER FUNCTION record_value_held_is_sealed() RESET enable_seqscan;
ALTER FUNCTION record_value_is_of_what_has_one() RESET enable_seqscan;
ALTER FUNCTION memory_record_keeps_its_past() RESET enable_seqscan;
ALTER FUNCTION search_row_says_what_its_fact_says() RESET enable_seqscan;
