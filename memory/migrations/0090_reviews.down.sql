DROP INDEX pending_act_by_fact;
ALTER TABLE pending_act DROP COLUMN fact_id;
DROP INDEX memory_record_disputed;
ALTER TABLE memory_record DROP COLUMN would_supersede;
DROP INDEX fact_in_review;
ALTER TABLE fact DROP COLUMN review_reason;
