DROP TRIGGER memory_record_new_is_caught ON memory_record;
DROP FUNCTION new_record_is_caught();
DROP TRIGGER fact_revision_new_is_caught ON fact_revision;
DROP FUNCTION new_fact_is_caught();
DROP FUNCTION hold_names_record(legal_hold, memory_record);
DROP FUNCTION hold_names_fact(legal_hold, fact);
DROP FUNCTION new_items_lock(uuid);
DROP TABLE hold_refusal;
DROP TABLE hold_item;
DROP TABLE record_hold;
DROP TRIGGER fact_hold_goes_with_release ON fact_hold;
REVOKE DELETE ON fact_hold FROM kindmem_app;
DROP FUNCTION hold_match_goes_with_release();
DROP TRIGGER legal_hold_is_only_released ON legal_hold;
DROP FUNCTION legal_hold_is_only_released();
DROP TABLE hold_release;
DROP TRIGGER legal_hold_never_removed ON legal_hold;
DROP INDEX legal_hold_newest_first;
DROP INDEX legal_hold_catching;
ALTER TABLE legal_hold
  DROP CONSTRAINT legal_hold_future_needs_a_selector, DROP CONSTRAINT legal_hold_selector_names_something,
  DROP COLUMN released_because, DROP COLUMN covers_future, DROP COLUMN has_selector, DROP COLUMN written_until,
  DROP COLUMN written_from, DROP COLUMN run_ids, DROP COLUMN fact_types, DROP COLUMN subject_ids;
