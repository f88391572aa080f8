SET LOCAL ROLE kindmem_search;
CREATE OR REPLACE FUNCTION work_due(works text[]) RETURNS TABLE (tenant_id uuid, work text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
  SELECT t.id, w.work FROM tenant t CROSS JOIN unnest(works) AS w (work)
  WHERE t.closed_at IS NULL AND CASE w.work
    WHEN 'seal' THEN
      EXISTS (SELECT FROM run_head h
              WHERE h.tenant_id = t.id AND h.last_at >= clock_timestamp() - interval '2 minutes'
                AND h.next_sequence - 1 > coalesce((
                  SELECT max(l.to_sequence) FROM seal_leaf l
                  WHERE l.tenant_id = h.tenant_id AND l.run_id = h.run_id AND l.leaf_type = 'seal/v1'), -1))
      OR coalesce((SELECT max(l.leaf_index) + 1 FROM seal_leaf l WHERE l.tenant_id = t.id), 0)
         > coalesce((SELECT max(c.size) FROM checkpoint c WHERE c.tenant_id = t.id), 0)
    WHEN 'fill-in-vectors' THEN
      EXISTS (SELECT FROM embedding_task e WHERE e.tenant_id = t.id AND e.next_at <= clock_timestamp())
    WHEN 'drop-old-answers' THEN
      EXISTS (SELECT FROM idempotency_key k WHERE k.tenant_id = t.id AND k.expires_at <= clock_timestamp())
    WHEN 'expire-records' THEN
      EXISTS (SELECT FROM memory_record m
              WHERE m.tenant_id = t.id AND m.status = 'active'
                -- The day where it is latest; the job asks what day it is there.
                AND m.valid_until < (clock_timestamp() AT TIME ZONE 'UTC' + interval '14 hours')::date)
    WHEN 'destroy-undo-copies' THEN
      EXISTS (SELECT FROM sealed_copy s WHERE s.tenant_id = t.id AND s.destroy_after <= clock_timestamp())
    WHEN 'run-erasures' THEN
      EXISTS (SELECT FROM erasure e
              WHERE e.tenant_id = t.id AND e.status <> 'completed' AND e.next_at <= clock_timestamp()
                AND (e.lease_until IS NULL OR e.lease_until <= clock_timestamp()))
    WHEN 'verify' THEN
      EXISTS (SELECT FROM verification_job v WHERE v.tenant_id = t.id AND v.status IN ('queued', 'running'))
    WHEN 'refresh-stale' THEN
      EXISTS (SELECT FROM fact_freshness s JOIN fact f ON f.tenant_id = s.tenant_id AND f.id = s.fact_id
              WHERE s.tenant_id = t.id AND s.strategy = 'background' AND s.ttl_seconds IS NOT NULL
                AND (s.last_verified_at IS NULL
                     OR s.last_verified_at + s.ttl_seconds * interval '1 second' < clock_timestamp())
                AND (s.last_failure IS NULL OR s.last_attempt_at IS NULL
                     OR s.last_attempt_at < clock_timestamp() - interval '5 minutes')
                AND f.deleted_at IS NULL AND f.review IS NULL AND (f.expires_at IS NULL OR f.expires_at > clock_timestamp()))
    WHEN 'reindex' THEN
      EXISTS (SELECT FROM reindexing r
              WHERE r.tenant_id = t.id
                AND (r.looked_through_at IS NULL OR r.requested_at < clock_timestamp() - interval '60 seconds'))
    WHEN 'deliver-webhooks' THEN
      EXISTS (SELECT FROM webhook h JOIN webhook_delivery d ON d.tenant_id = h.tenant_id AND d.webhook_id = h.id
              WHERE h.tenant_id = t.id AND h.disabled_because IS NULL AND d.status = 'pending' AND d.next_at <= clock_timestamp()
                AND (h.rests_until IS NULL OR h.rests_until <= clock_timestamp())
                AND (d.lease_until IS NULL OR d.lease_until <= clock_timestamp()))
    WHEN 'prune-webhook-log' THEN
      EXISTS (SELECT FROM webhook_event e
              WHERE e.tenant_id = t.id AND e.occurred_at < clock_timestamp() - interval '30 days')
    -- What has no sign of its own is due whenever it is asked for.
    ELSE true
  END
$$;
RESET ROLE;

DROP POLICY definer_reads ON record_hold;
REVOKE SELECT ON record_hold FROM kindmem_search;
DROP POLICY definer_reads ON fact_hold;
REVOKE SELECT ON fact_hold FROM kindmem_search;
DROP POLICY definer_reads ON legal_hold;
REVOKE SELECT ON legal_hold FROM kindmem_search;
CREATE OR REPLACE FUNCTION new_record_is_caught() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  caught uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(NEW.tenant_id));
  SELECT array_agg(h.id ORDER BY h.id) INTO caught
  FROM legal_hold h JOIN memory_record m ON m.tenant_id = h.tenant_id AND m.id = NEW.id
  WHERE h.tenant_id = NEW.tenant_id AND h.covers_future AND h.released_at IS NULL AND hold_names_record(h, m)
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

CREATE OR REPLACE FUNCTION new_fact_is_caught() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  caught uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(NEW.tenant_id));
  SELECT array_agg(h.id ORDER BY h.id) INTO caught
  FROM legal_hold h JOIN fact f ON f.tenant_id = h.tenant_id AND f.id = NEW.fact_id
  WHERE h.tenant_id = NEW.tenant_id AND h.covers_future AND h.released_at IS NULL AND hold_names_fact(h, f)
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

CREATE OR REPLACE FUNCTION record_value_held_is_sealed() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  held integer;
BEGIN
  IF TG_TABLE_NAME = 'sealed_copy' THEN
    IF OLD.purpose <> 'hold' THEN
      RETURN OLD;
    END IF;
  END IF;
  SELECT r.hold_count INTO held FROM memory_record r WHERE r.tenant_id = OLD.tenant_id AND r.id = OLD.record_id FOR SHARE;
  IF held > 0 AND (TG_TABLE_NAME = 'sealed_copy' OR NOT EXISTS (
       SELECT 1 FROM sealed_copy s WHERE s.tenant_id = OLD.tenant_id AND s.record_id = OLD.record_id AND s.purpose = 'hold')) THEN
    RAISE EXCEPTION 'the record is under legal hold'
      USING ERRCODE = '23514', CONSTRAINT = 'record_value_held_is_sealed', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION fact_is_not_held() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  held integer;
BEGIN
  IF TG_TABLE_NAME = 'fact' THEN
    held := OLD.hold_count;
  ELSE
    SELECT f.hold_count INTO held FROM fact f WHERE f.tenant_id = OLD.tenant_id AND f.id = OLD.fact_id FOR SHARE;
  END IF;
  IF held > 0 THEN
    RAISE EXCEPTION 'the fact is under legal hold'
      USING ERRCODE = '23514', CONSTRAINT = 'fact_is_not_held', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION fact_keeps_identity() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.scope_text <> OLD.scope_text OR NEW.type <> OLD.type
     OR NEW.created_at <> OLD.created_at OR NEW.current_version < OLD.current_version
     OR (OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS DISTINCT FROM OLD.deleted_at) THEN
    RAISE EXCEPTION 'a fact keeps its id, type, scope and first write, and its version only grows'
      USING ERRCODE = '23514', CONSTRAINT = 'fact_keeps_identity', TABLE = 'fact';
  END IF;
  IF OLD.hold_count > 0 AND OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL THEN
    RAISE EXCEPTION 'the fact is under legal hold'
      USING ERRCODE = '23514', CONSTRAINT = 'fact_is_not_held', TABLE = 'fact';
  END IF;
  RETURN NEW;
END
$$;

DROP FUNCTION an_unfinished_hold_names_record(uuid, text);
DROP FUNCTION an_unfinished_hold_names_fact(uuid, text);
DROP FUNCTION record_is_named(uuid, text);
DROP FUNCTION fact_is_named(uuid, text);

CREATE OR REPLACE FUNCTION legal_hold_is_only_released() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF OLD.released_at IS NOT NULL
     OR (to_jsonb(OLD) - 'released_at' - 'released_because' - 'review_on')
        <> (to_jsonb(NEW) - 'released_at' - 'released_because' - 'review_on')
     OR (NEW.released_at IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM hold_release r
           WHERE r.tenant_id = NEW.tenant_id AND r.hold_id = NEW.id AND r.decision = 'approved')) THEN
    RAISE EXCEPTION 'a hold is released once, by two people, and never changed'
      USING ERRCODE = '23514', CONSTRAINT = 'legal_hold_is_only_released', TABLE = 'legal_hold';
  END IF;
  RETURN NEW;
END
$$;

ALTER TABLE legal_hold DROP COLUMN named_until, DROP COLUMN taken_in_after, DROP COLUMN taking_in, DROP COLUMN taken_in_at;
