-- A session's plan of a trigger is made once, perhaps while the tables are empty: then it reads them whole for each new row.
-- Most tenants have no hold at all.
CREATE OR REPLACE FUNCTION new_fact_is_caught() RETURNS trigger
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  caught uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(NEW.tenant_id));
  IF NOT EXISTS (SELECT FROM legal_hold h WHERE h.tenant_id = NEW.tenant_id AND h.released_at IS NULL) THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(h.id ORDER BY h.id) INTO caught
  FROM legal_hold h JOIN fact f ON f.tenant_id = h.tenant_id AND f.id = NEW.fact_id
  WHERE h.tenant_id = NEW.tenant_id AND h.released_at IS NULL AND hold_names_fact(h, f)
    AND (h.covers_future OR (h.taken_in_at IS NULL AND f.created_at < h.named_until))
    AND NOT EXISTS (SELECT 1 FROM fact_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id AND k.fact_id = NEW.fact_id);
  IF caught IS NOT NULL THEN
    UPDATE fact SET hold_count = hold_count + cardinality(caught) WHERE tenant_id = NEW.tenant_id AND id = NEW.fact_id;
    INSERT INTO fact_hold (tenant_id, hold_id, fact_id) SELECT NEW.tenant_id, h, NEW.fact_id FROM unnest(caught) h;
    INSERT INTO hold_item (tenant_id, hold_id, kind, item_id, is_later)
    SELECT NEW.tenant_id, h, 'fact', NEW.fact_id, true FROM unnest(caught) h;
  END IF;
  RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION new_record_is_caught() RETURNS trigger
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  caught uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(NEW.tenant_id));
  IF NOT EXISTS (SELECT FROM legal_hold h WHERE h.tenant_id = NEW.tenant_id AND h.released_at IS NULL) THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(h.id ORDER BY h.id) INTO caught
  FROM legal_hold h JOIN memory_record m ON m.tenant_id = h.tenant_id AND m.id = NEW.id
  WHERE h.tenant_id = NEW.tenant_id AND h.released_at IS NULL AND hold_names_record(h, m)
    AND (h.covers_future OR (h.taken_in_at IS NULL AND m.recorded_at < h.named_until))
    AND NOT EXISTS (SELECT 1 FROM record_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id AND k.record_id = NEW.id);
  IF caught IS NOT NULL THEN
    UPDATE memory_record SET hold_count = hold_count + cardinality(caught) WHERE tenant_id = NEW.tenant_id AND id = NEW.id;
    INSERT INTO record_hold (tenant_id, hold_id, record_id) SELECT NEW.tenant_id, h, NEW.id FROM unnest(caught) h;
    INSERT INTO hold_item (tenant_id, hold_id, kind, item_id, is_later)
    SELECT NEW.tenant_id, h, 'record', NEW.id, true FROM unnest(caught) h;
  END IF;
  RETURN NULL;
END
$$;
