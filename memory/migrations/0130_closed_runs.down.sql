CREATE OR REPLACE FUNCTION run_head_moves_forward() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.tenant_id = OLD.tenant_id AND NEW.run_id = OLD.run_id AND NEW.first_at = OLD.first_at
     AND NEW.next_sequence > OLD.next_sequence AND NEW.last_at >= OLD.last_at THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a run head only moves forward'
    USING ERRCODE = '23514', CONSTRAINT = 'run_head_moves_forward', TABLE = 'run_head';
END
$$;
ALTER TABLE run_head DROP COLUMN closed_at;
