DROP TABLE quarantine_item;
DROP TABLE quarantine;
-- What a quarantine held back waits for review instead: it is still read by nobody.
ALTER TABLE fact NO FORCE ROW LEVEL SECURITY;
ALTER TABLE fact DISABLE TRIGGER USER;
UPDATE fact SET review = 'pending' WHERE review = 'quarantined';
ALTER TABLE fact ENABLE TRIGGER USER;
ALTER TABLE fact FORCE ROW LEVEL SECURITY;
ALTER TABLE fact DROP CONSTRAINT fact_review_is_known;
ALTER TABLE fact ADD CONSTRAINT fact_review_is_known CHECK (review IN ('pending'));
ALTER TABLE memory_record NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_record DISABLE TRIGGER USER;
UPDATE memory_record SET review = 'pending' WHERE review = 'quarantined';
ALTER TABLE memory_record ENABLE TRIGGER USER;
ALTER TABLE memory_record FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_record DROP CONSTRAINT memory_record_review_is_known;
ALTER TABLE memory_record ADD CONSTRAINT memory_record_review_is_known CHECK (review IN ('pending', 'withdrawn'));
