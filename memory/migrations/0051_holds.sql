-- Legal holds as cases: what a hold names, what it keeps now, who asked for its release and who agreed, and what it refused.

ALTER TABLE legal_hold
  -- Queried forms of scope_text, which stays what is shown. Empty: that criterion does not narrow.
  ADD COLUMN subject_ids text[] NOT NULL DEFAULT '{}',
  ADD COLUMN fact_types text[] NOT NULL DEFAULT '{}',
  ADD COLUMN run_ids text[] NOT NULL DEFAULT '{}',
  ADD COLUMN written_from timestamptz,
  ADD COLUMN written_until timestamptz,
  ADD COLUMN has_selector boolean NOT NULL DEFAULT false,
  ADD COLUMN covers_future boolean NOT NULL DEFAULT false,
  ADD COLUMN released_because text,
  ADD CONSTRAINT legal_hold_selector_names_something
    CHECK (NOT has_selector OR cardinality(subject_ids) + cardinality(fact_types) + cardinality(run_ids) > 0
           OR written_from IS NOT NULL OR written_until IS NOT NULL),
  ADD CONSTRAINT legal_hold_future_needs_a_selector CHECK (NOT covers_future OR has_selector);
CREATE INDEX legal_hold_catching ON legal_hold (tenant_id) WHERE covers_future AND released_at IS NULL;
CREATE INDEX legal_hold_newest_first ON legal_hold (tenant_id, placed_at DESC, id DESC);
CREATE TRIGGER legal_hold_never_removed BEFORE DELETE ON legal_hold
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();

-- What a hold says is fixed when it is placed; it is only ever released, once, and reviewed.
CREATE FUNCTION legal_hold_is_only_released() RETURNS trigger
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
CREATE TRIGGER legal_hold_is_only_released BEFORE UPDATE ON legal_hold
  FOR EACH ROW EXECUTE FUNCTION legal_hold_is_only_released();

-- A request and its decision: by two different members, which the database checks too.
CREATE TABLE hold_release (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  hold_id uuid NOT NULL,
  reason text NOT NULL CONSTRAINT hold_release_reason_is_given CHECK (length(reason) BETWEEN 1 AND 2000),
  requested_by text NOT NULL CONSTRAINT hold_release_is_asked_by_a_person CHECK (starts_with(requested_by, 'user:')),
  requested_at timestamptz NOT NULL DEFAULT now(),
  decision text CONSTRAINT hold_release_decision_is_known CHECK (decision IN ('approved', 'withdrawn')),
  decided_by text CONSTRAINT hold_release_is_decided_by_a_person CHECK (starts_with(decided_by, 'user:')),
  decided_at timestamptz,
  CONSTRAINT hold_release_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT hold_release_of_hold FOREIGN KEY (tenant_id, hold_id) REFERENCES legal_hold (tenant_id, id),
  CONSTRAINT hold_release_takes_two CHECK (decision IS DISTINCT FROM 'approved' OR decided_by <> requested_by),
  CONSTRAINT hold_release_decided_says_who
    CHECK ((decision IS NULL) = (decided_by IS NULL) AND (decision IS NULL) = (decided_at IS NULL))
);
CREATE UNIQUE INDEX hold_release_one_is_open ON hold_release (tenant_id, hold_id) WHERE decision IS NULL;
CREATE INDEX hold_release_by_hold ON hold_release (tenant_id, hold_id, requested_at);
SELECT kindmem_protect('hold_release', 'SELECT, INSERT');
GRANT UPDATE (decision, decided_by, decided_at) ON hold_release TO kindmem_app;

CREATE TABLE record_hold (
  tenant_id uuid NOT NULL,
  hold_id uuid NOT NULL,
  record_id text NOT NULL,
  CONSTRAINT record_hold_pkey PRIMARY KEY (tenant_id, hold_id, record_id),
  CONSTRAINT record_hold_belongs_to_hold FOREIGN KEY (tenant_id, hold_id) REFERENCES legal_hold (tenant_id, id),
  CONSTRAINT record_hold_keeps_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
);
CREATE INDEX record_hold_by_record ON record_hold (tenant_id, record_id);
SELECT kindmem_protect('record_hold', 'SELECT, INSERT, DELETE');
GRANT DELETE ON fact_hold TO kindmem_app;

-- A match goes with the release of its hold and not before; what it was stays in hold_item.
CREATE FUNCTION hold_match_goes_with_release() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM legal_hold h WHERE h.tenant_id = OLD.tenant_id AND h.id = OLD.hold_id AND h.released_at IS NULL) THEN
    RAISE EXCEPTION 'the hold is not released'
      USING ERRCODE = '23514', CONSTRAINT = 'hold_match_goes_with_release', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN OLD;
END
$$;
CREATE TRIGGER fact_hold_goes_with_release BEFORE DELETE ON fact_hold
  FOR EACH ROW EXECUTE FUNCTION hold_match_goes_with_release();
CREATE TRIGGER record_hold_goes_with_release BEFORE DELETE ON record_hold
  FOR EACH ROW EXECUTE FUNCTION hold_match_goes_with_release();

-- What a hold ever kept. Never removed; no foreign key to the item, which may go after the release.
CREATE TABLE hold_item (
  tenant_id uuid NOT NULL,
  hold_id uuid NOT NULL,
  kind text NOT NULL CONSTRAINT hold_item_kind_is_known CHECK (kind IN ('fact', 'record')),
  item_id text NOT NULL,
  is_later boolean NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT hold_item_pkey PRIMARY KEY (tenant_id, hold_id, kind, item_id),
  CONSTRAINT hold_item_of_hold FOREIGN KEY (tenant_id, hold_id) REFERENCES legal_hold (tenant_id, id)
);
SELECT kindmem_protect('hold_item', 'SELECT, INSERT');
CREATE TRIGGER hold_item_never_changed BEFORE UPDATE OR DELETE ON hold_item
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();

-- What a hold refused: written after the refusing transaction has rolled back.
CREATE TABLE hold_refusal (
  tenant_id uuid NOT NULL CONSTRAINT hold_refusal_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  act text NOT NULL,
  asked_by text NOT NULL,
  asked_at timestamptz NOT NULL DEFAULT now(),
  item_ids text[] NOT NULL,
  log_entry_id text NOT NULL,
  CONSTRAINT hold_refusal_pkey PRIMARY KEY (tenant_id, id)
);
CREATE INDEX hold_refusal_newest_first ON hold_refusal (tenant_id, asked_at DESC, id DESC);
SELECT kindmem_protect('hold_refusal', 'SELECT, INSERT');

-- The lock between writing something new and placing a hold (or starting an erasure) that would catch it: writers share it,
-- whoever places takes it alone and so waits for the writers that could not know.
CREATE FUNCTION new_items_lock(tenant uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT hashtextextended('new items ' || tenant::text, 0) $$;

-- Does this hold's selector name this fact? A subject is the person in any place that names one.
CREATE FUNCTION hold_names_fact(h legal_hold, f fact) RETURNS boolean
LANGUAGE sql STABLE
AS $$
  SELECT h.has_selector
     AND (cardinality(h.subject_ids) = 0 OR f.user_id = ANY (h.subject_ids) OR f.participant_id = ANY (h.subject_ids)
          OR f.project_id = ANY (h.subject_ids) OR f.org_id = ANY (h.subject_ids)
          OR EXISTS (SELECT 1 FROM fact_subject s
                     WHERE s.tenant_id = f.tenant_id AND s.fact_id = f.id AND s.subject_id = ANY (h.subject_ids)))
     AND (cardinality(h.fact_types) = 0 OR f.type = ANY (h.fact_types))
     AND (h.written_from IS NULL OR f.created_at >= h.written_from)
     AND (h.written_until IS NULL OR f.created_at < h.written_until)
     AND (cardinality(h.run_ids) = 0
          OR EXISTS (SELECT 1 FROM fact_revision r
                     WHERE r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.generated_run_id = ANY (h.run_ids))
          OR EXISTS (SELECT 1 FROM fact_cause c JOIN log_entry e ON e.tenant_id = c.tenant_id AND e.id = c.log_entry_id
                     WHERE c.tenant_id = f.tenant_id AND c.fact_id = f.id AND e.run_id = ANY (h.run_ids)))
$$;

-- The same of a record. Types are of facts: a hold by types alone names no record.
CREATE FUNCTION hold_names_record(h legal_hold, m memory_record) RETURNS boolean
LANGUAGE sql STABLE
AS $$
  SELECT h.has_selector AND cardinality(h.fact_types) = 0
     AND (cardinality(h.subject_ids) = 0 OR m.subject_id = ANY (h.subject_ids)
          OR m.bindings ->> 'user_id' = ANY (h.subject_ids))
     AND (h.written_from IS NULL OR m.recorded_at >= h.written_from)
     AND (h.written_until IS NULL OR m.recorded_at < h.written_until)
     AND (cardinality(h.run_ids) = 0 OR m.evidence_ref = ANY (h.run_ids)
          OR EXISTS (SELECT 1 FROM record_observation o
                     WHERE o.tenant_id = m.tenant_id AND o.record_id = m.id AND o.run_key = ANY (h.run_ids))
          OR EXISTS (SELECT 1 FROM log_entry e
                     WHERE e.tenant_id = m.tenant_id AND e.id = m.evidence_ref AND e.run_id = ANY (h.run_ids)))
$$;

-- Later items: caught in the transaction that writes them, whoever writes. After the statement, so that subjects and causes that
-- come with a revision are there. The lock first, in a statement of its own: what follows it sees every hold placed before.
CREATE FUNCTION new_fact_is_caught() RETURNS trigger
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
CREATE TRIGGER fact_revision_new_is_caught AFTER INSERT ON fact_revision
  FOR EACH ROW EXECUTE FUNCTION new_fact_is_caught();

CREATE FUNCTION new_record_is_caught() RETURNS trigger
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
CREATE TRIGGER memory_record_new_is_caught AFTER INSERT ON memory_record
  FOR EACH ROW EXECUTE FUNCTION new_record_is_caught();
