-- A record that begins on a later day has a place of its own in its slot, so that what holds until then stays in use. On that day
-- it takes the other's place, and is upcoming no more.

ALTER TABLE memory_record
  ADD COLUMN is_upcoming boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT memory_record_upcoming_says_when CHECK (NOT is_upcoming OR valid_from IS NOT NULL);
GRANT UPDATE (is_upcoming) ON memory_record TO kindmem_app;

-- One active record per slot (subject, key, level, bindings), and one that will be.
DROP INDEX memory_record_one_active_per_slot;
CREATE UNIQUE INDEX memory_record_one_active_per_slot
  ON memory_record (tenant_id, subject_type, subject_id, key, level, bindings_hash, is_upcoming)
  WHERE status = 'active' AND review IS NULL;
-- What the worker looks up every round: nearly always nothing.
CREATE INDEX memory_record_upcoming ON memory_record (tenant_id, valid_from) WHERE is_upcoming AND status = 'active';

CREATE OR REPLACE FUNCTION memory_record_moves_forward() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.status <> OLD.status AND NOT (
       OLD.status = 'active' OR (OLD.status IN ('superseded', 'expired') AND NEW.status = 'deleted')) THEN
    RAISE EXCEPTION 'the status of a record only moves forward'
      USING ERRCODE = '23514', CONSTRAINT = 'memory_record_moves_forward', TABLE = 'memory_record';
  END IF;
  IF (NEW.tenant_id, NEW.id, NEW.subject_type, NEW.key, NEW.authority, NEW.source_type, NEW.evidence_kind, NEW.captured_at,
      NEW.captured_by, NEW.route, NEW.sensitivity, NEW.written_by, NEW.written_by_role, NEW.recorded_at)
     IS DISTINCT FROM
     (OLD.tenant_id, OLD.id, OLD.subject_type, OLD.key, OLD.authority, OLD.source_type, OLD.evidence_kind, OLD.captured_at,
      OLD.captured_by, OLD.route, OLD.sensitivity, OLD.written_by, OLD.written_by_role, OLD.recorded_at)
     OR NEW.source_of_truth IS DISTINCT FROM OLD.source_of_truth
     OR NEW.is_upcoming AND NOT OLD.is_upcoming
     OR ((NEW.subject_id <> OLD.subject_id OR NEW.evidence_ref <> OLD.evidence_ref) AND NEW.status <> 'deleted') THEN
    RAISE EXCEPTION 'a record keeps its identity and source'
      USING ERRCODE = '23514', CONSTRAINT = 'memory_record_keeps_identity', TABLE = 'memory_record';
  END IF;
  NEW.row_version := OLD.row_version + 1;
  NEW.changed_at := greatest(NEW.changed_at, OLD.changed_at);
  IF (NEW.status, NEW.review, NEW.level, NEW.bindings_text, NEW.valid_from, NEW.valid_until, NEW.confirmed_at, NEW.disputed_at,
      NEW.trust, least(NEW.observations, 3))
     IS DISTINCT FROM
     (OLD.status, OLD.review, OLD.level, OLD.bindings_text, OLD.valid_from, OLD.valid_until, OLD.confirmed_at, OLD.disputed_at,
      OLD.trust, least(OLD.observations, 3)) THEN
    NEW.version_from := NEW.changed_at;
  END IF;
  RETURN NEW;
END
$$;
