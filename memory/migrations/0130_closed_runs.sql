-- A run can be closed: it ends with its newest entry. The next seal adds a `run-closed` leaf; from then on an entry past it is
-- tampering, but for the server's own words that a payload was erased.

ALTER TABLE run_head ADD COLUMN closed_at timestamptz;

-- A head only moves forward, and not while its run is closed; closing moves nothing.
CREATE OR REPLACE FUNCTION run_head_moves_forward() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.tenant_id = OLD.tenant_id AND NEW.run_id = OLD.run_id AND NEW.first_at = OLD.first_at THEN
    IF NEW.next_sequence > OLD.next_sequence AND NEW.last_at >= OLD.last_at
       AND NEW.closed_at IS NOT DISTINCT FROM OLD.closed_at THEN
      IF OLD.closed_at IS NULL THEN
        RETURN NEW;
      END IF;
      RAISE EXCEPTION 'the run is closed'
        USING ERRCODE = '23514', CONSTRAINT = 'run_head_is_open', TABLE = 'run_head';
    END IF;
    IF NEW.closed_at IS DISTINCT FROM OLD.closed_at
       AND (NEW.next_sequence, NEW.head_hash, NEW.prev_hash, NEW.entry_count, NEW.last_at)
         = (OLD.next_sequence, OLD.head_hash, OLD.prev_hash, OLD.entry_count, OLD.last_at) THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'a run head only moves forward'
    USING ERRCODE = '23514', CONSTRAINT = 'run_head_moves_forward', TABLE = 'run_head';
END
$$;
