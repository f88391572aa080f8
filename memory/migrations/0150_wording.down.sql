DROP INDEX fact_by_wording;
ALTER TABLE fact DROP COLUMN wording;
