-- Erasures: whom one is about only while it runs, how far it came, what each store cleared; afterwards a keyed hash alone.

CREATE TABLE erasure (
  tenant_id uuid NOT NULL CONSTRAINT erasure_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  selector_kind text NOT NULL CONSTRAINT erasure_selector_is_known
    CHECK (selector_kind IN ('fact', 'participant', 'external', 'user', 'conversation')),
  selector_id text CONSTRAINT erasure_selector_has_length CHECK (length(selector_id) BETWEEN 1 AND 256),
  selector_digest bytea CONSTRAINT erasure_digest_has_length CHECK (octet_length(selector_digest) = 32),
  key_id text,
  status text NOT NULL DEFAULT 'pending' CONSTRAINT erasure_status_is_known CHECK (status IN ('pending', 'running', 'completed')),
  phase text NOT NULL DEFAULT 'seed' CONSTRAINT erasure_phase_is_known
    CHECK (phase IN ('seed', 'expand', 'settle', 'erase', 'done')),
  -- Within `erase`: which store is next, and after which entry of the log.
  store text NOT NULL DEFAULT 'facts',
  after_run text,
  after_sequence bigint,
  requested_by text NOT NULL,
  counts_text text NOT NULL DEFAULT '{}',
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  is_forced boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  completed_at timestamptz,
  replayed_at timestamptz,
  next_at timestamptz NOT NULL DEFAULT now(),
  runner uuid,
  lease_until timestamptz,
  CONSTRAINT erasure_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT erasure_completed_keeps_no_identifier CHECK ((status = 'completed') = (selector_id IS NULL)),
  CONSTRAINT erasure_completed_says_when CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
  CONSTRAINT erasure_digest_names_its_key CHECK ((selector_digest IS NULL) = (key_id IS NULL))
);
CREATE INDEX erasure_unfinished ON erasure (tenant_id) WHERE status <> 'completed';
CREATE INDEX erasure_newest_first ON erasure (tenant_id, created_at DESC, id DESC);
SELECT kindmem_protect('erasure', 'SELECT, INSERT, UPDATE');
CREATE TRIGGER erasure_never_removed BEFORE DELETE ON erasure FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();

-- Where a person is named in acts and receipts: by whom something was done from a page link.
GRANT UPDATE (actor) ON record_act TO kindmem_app;
GRANT UPDATE (actor) ON receipt TO kindmem_app;

-- While it runs, nothing new is written about whom it erases, whoever writes. The lock first: an erasure waits once for the
-- writers that could not know of it, and whoever comes after sees it.
CREATE FUNCTION refuse_while_erasing(tenant uuid, people text[], thread text, fact_id text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(tenant));
  IF EXISTS (SELECT 1 FROM erasure e
             WHERE e.tenant_id = tenant AND e.status <> 'completed'
               AND CASE e.selector_kind WHEN 'conversation' THEN e.selector_id = thread WHEN 'fact' THEN e.selector_id = fact_id
                   ELSE e.selector_id = ANY (people) END) THEN
    RAISE EXCEPTION 'an erasure is running' USING ERRCODE = '23514', CONSTRAINT = 'erasure_is_not_running', TABLE = 'erasure';
  END IF;
END
$$;

CREATE FUNCTION new_fact_meets_no_erasure() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  f fact;
BEGIN
  SELECT * INTO f FROM fact WHERE tenant_id = NEW.tenant_id AND id = NEW.fact_id;
  PERFORM refuse_while_erasing(
    NEW.tenant_id,
    ARRAY[f.user_id, f.participant_id] || ARRAY(
      SELECT s.subject_id FROM fact_subject s
      WHERE s.tenant_id = NEW.tenant_id AND s.fact_id = NEW.fact_id AND s.version = NEW.version),
    f.thread_id, f.id);
  RETURN NULL;
END
$$;
CREATE TRIGGER fact_revision_meets_no_erasure AFTER INSERT ON fact_revision
  FOR EACH ROW EXECUTE FUNCTION new_fact_meets_no_erasure();

CREATE FUNCTION new_record_meets_no_erasure() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM refuse_while_erasing(
    NEW.tenant_id,
    CASE WHEN NEW.subject_type = 'user' THEN ARRAY[NEW.subject_id, NEW.bindings ->> 'user_id']
         ELSE ARRAY[NEW.bindings ->> 'user_id'] END,
    NEW.bindings ->> 'thread_id', NULL);
  RETURN NULL;
END
$$;
CREATE TRIGGER memory_record_meets_no_erasure AFTER INSERT ON memory_record
  FOR EACH ROW EXECUTE FUNCTION new_record_meets_no_erasure();

-- Once a statement: a batch of a thousand entries asks once.
CREATE FUNCTION new_entries_meet_no_erasure() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  named record;
BEGIN
  FOR named IN
    SELECT a.tenant_id, array_agg(DISTINCT p.id) AS people, a.thread_id AS thread
    FROM added a, LATERAL (VALUES (a.user_id), (a.participant_id)) p (id)
    WHERE a.user_id IS NOT NULL OR a.participant_id IS NOT NULL OR a.thread_id IS NOT NULL
    GROUP BY a.tenant_id, a.thread_id
  LOOP
    PERFORM refuse_while_erasing(named.tenant_id, named.people, named.thread, NULL);
  END LOOP;
  RETURN NULL;
END
$$;
CREATE TRIGGER log_entry_meets_no_erasure AFTER INSERT ON log_entry REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION new_entries_meet_no_erasure();
