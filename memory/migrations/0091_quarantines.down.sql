DROP TABLE quarantine_item;
DROP TABLE quarantine;
-- What a quarantine held back waits for review instead: it is still read by nobody.
UPDATE fact SET review = 'pending' WHERE review = 'quarantined';
ALTER TABLE fact DROP CONSTRAINT fact_review_is_known;
ALTER TABLE fact ADD CONSTRAINT fact_review_is_known CHECK (review IN ('pending'));
UPDATE memory_record SET review = 'pending' WHERE review = 'quarantined';
ALTER TABLE memory_record DROP CONSTRAINT memory_record_review_is_known;
ALTER TABLE memory_record ADD CONSTRAINT memory_record_review_is_known CHECK (review IN ('pending', 'withdrawn'));
