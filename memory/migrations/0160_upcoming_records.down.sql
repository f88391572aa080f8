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

-- What begins later in a filled slot has no place there any more: it waits for a person's decision.
ALTER TABLE memory_record NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_record DISABLE TRIGGER USER;
UPDATE memory_record u SET review = 'pending', review_reason = 'upcoming'
WHERE u.is_upcoming AND u.status = 'active' AND u.review IS NULL AND EXISTS (
  SELECT 1 FROM memory_record p
  WHERE p.tenant_id = u.tenant_id AND p.subject_type = u.subject_type AND p.subject_id = u.subject_id AND p.key = u.key
    AND p.level = u.level AND p.bindings_hash = u.bindings_hash AND p.status = 'active' AND p.review IS NULL
    AND NOT p.is_upcoming);
ALTER TABLE memory_record ENABLE TRIGGER USER;
ALTER TABLE memory_record FORCE ROW LEVEL SECURITY;

DROP INDEX memory_record_upcoming;
DROP INDEX memory_record_one_active_per_slot;
CREATE UNIQUE INDEX memory_record_one_active_per_slot
  ON memory_record (tenant_id, subject_type, subject_id, key, level, bindings_hash)
  WHERE status = 'active' AND review IS NULL;
ALTER TABLE memory_record DROP COLUMN is_upcoming;
