-- Memory records: the envelope (a row that stays for ever, in the end as a tombstone) and, apart from it, what can be taken away:
-- value, kept wording of past versions, sealed copies. Status only moves forward; a value is never edited.

CREATE TABLE memory_record (
  tenant_id uuid NOT NULL CONSTRAINT memory_record_belongs_to_tenant REFERENCES tenant (id),
  id text NOT NULL CONSTRAINT memory_record_id_has_length CHECK (length(id) BETWEEN 1 AND 256),
  subject_type text NOT NULL CONSTRAINT memory_record_subject_type_is_known
    CHECK (subject_type IN ('user', 'project', 'client', 'org')),
  subject_id text NOT NULL CONSTRAINT memory_record_subject_has_length CHECK (length(subject_id) BETWEEN 1 AND 256),
  key text COLLATE "C" NOT NULL CONSTRAINT memory_record_key_has_shape
    CHECK (length(key) <= 256 AND key ~ '^[a-z0-9_]+(\.[a-z0-9_]+)*$'),
  authority text NOT NULL CONSTRAINT memory_record_authority_is_known CHECK (authority IN ('preference', 'fact', 'policy')),
  source_type text NOT NULL CONSTRAINT memory_record_source_is_known
    CHECK (source_type IN ('user_stated', 'system_record', 'agent_inferred', 'user_correction')),
  source_rank smallint GENERATED ALWAYS AS (
    CASE source_type WHEN 'user_stated' THEN 1 WHEN 'user_correction' THEN 1 WHEN 'system_record' THEN 2 ELSE 3 END) STORED,
  evidence_kind text NOT NULL CONSTRAINT memory_record_evidence_is_known CHECK (evidence_kind IN ('message', 'record', 'trace')),
  evidence_ref text NOT NULL CONSTRAINT memory_record_evidence_is_named CHECK (length(evidence_ref) > 0),
  observations integer NOT NULL CONSTRAINT memory_record_observations_is_positive CHECK (observations > 0),
  captured_at timestamptz NOT NULL,
  captured_by text NOT NULL,
  source_of_truth text,
  level text NOT NULL CONSTRAINT memory_record_level_is_known
    CHECK (level IN ('instance', 'task', 'session', 'project', 'client', 'user', 'org')),
  level_rank smallint GENERATED ALWAYS AS (
    CASE level WHEN 'instance' THEN 1 WHEN 'task' THEN 2 WHEN 'session' THEN 3 WHEN 'project' THEN 4
               WHEN 'client' THEN 5 WHEN 'user' THEN 6 ELSE 7 END) STORED,
  bindings_text text NOT NULL,
  bindings jsonb GENERATED ALWAYS AS (bindings_text::jsonb) STORED,
  binding_count smallint GENERATED ALWAYS AS (
    jsonb_array_length(jsonb_path_query_array(bindings_text::jsonb, '$.keyvalue()'))) STORED,
  -- A column and a check, since the hash function is not declared immutable: an index row has no room for the text itself.
  bindings_hash bytea NOT NULL CONSTRAINT memory_record_bindings_hash_is_theirs
    CHECK (bindings_hash = sha256(convert_to(bindings_text, 'UTF8'))),
  valid_from date,
  valid_until date,
  revalidate_on text[] NOT NULL DEFAULT '{}',
  route text NOT NULL CONSTRAINT memory_record_route_is_named CHECK (length(route) BETWEEN 1 AND 256),
  broadened boolean NOT NULL DEFAULT false,
  status text NOT NULL DEFAULT 'active' CONSTRAINT memory_record_status_is_known
    CHECK (status IN ('active', 'superseded', 'expired', 'deleted')),
  sensitivity text NOT NULL CONSTRAINT memory_record_sensitivity_is_known
    CHECK (sensitivity IN ('none', 'personal', 'sensitive')),
  retain_value boolean NOT NULL DEFAULT false,
  deleted_at timestamptz,
  deleted_reason text CONSTRAINT memory_record_deleted_reason_has_length CHECK (length(deleted_reason) BETWEEN 1 AND 256),
  trust text NOT NULL CONSTRAINT memory_record_trust_is_known CHECK (trust IN ('unverified', 'asserted', 'verified')),
  review text CONSTRAINT memory_record_review_is_known CHECK (review IN ('pending', 'withdrawn')),
  review_reason text,
  confirmed_at timestamptz,
  disputed_at timestamptz,
  hold_count integer NOT NULL DEFAULT 0 CONSTRAINT memory_record_hold_count_is_not_negative CHECK (hold_count >= 0),
  written_by text NOT NULL,
  written_by_role text NOT NULL,
  recorded_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,
  ended_at timestamptz,
  -- Since when it says what it says now, and how often it changed: kept by the trigger.
  version_from timestamptz NOT NULL,
  row_version integer NOT NULL DEFAULT 1,
  request_digest bytea,
  CONSTRAINT memory_record_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT memory_record_wide_inference_is_confirmed
    CHECK (source_type <> 'agent_inferred' OR level IN ('instance', 'task') OR confirmed_at IS NOT NULL),
  CONSTRAINT memory_record_policy_points_to_its_source CHECK (authority <> 'policy' OR source_of_truth IS NOT NULL),
  CONSTRAINT memory_record_correction_is_of_one_instance
    CHECK (source_type <> 'user_correction' OR broadened OR level = 'instance'),
  CONSTRAINT memory_record_sensitive_ends CHECK (sensitivity <> 'sensitive' OR valid_until IS NOT NULL),
  CONSTRAINT memory_record_valid_dates_in_order CHECK (valid_from IS NULL OR valid_until IS NULL OR valid_from <= valid_until),
  CONSTRAINT memory_record_tombstone_says_when_and_why
    CHECK ((status = 'deleted') = (deleted_at IS NOT NULL) AND (deleted_at IS NULL) = (deleted_reason IS NULL)),
  CONSTRAINT memory_record_ended_says_when CHECK ((status = 'active') = (ended_at IS NULL))
) WITH (fillfactor = 90);
-- What recall reads: one short range.
CREATE INDEX memory_record_recalled ON memory_record (tenant_id, key, subject_type, subject_id)
  WHERE status = 'active' AND review IS NULL;
-- One active record per slot (subject, key, level, bindings).
CREATE UNIQUE INDEX memory_record_one_active_per_slot
  ON memory_record (tenant_id, subject_type, subject_id, key, level, bindings_hash)
  WHERE status = 'active' AND review IS NULL;
CREATE INDEX memory_record_newest_first ON memory_record (tenant_id, recorded_at DESC, id DESC) WHERE review IS NULL;
CREATE INDEX memory_record_by_subject ON memory_record (tenant_id, subject_id, subject_type, recorded_at DESC, id DESC);
CREATE INDEX memory_record_by_key ON memory_record (tenant_id, key, recorded_at DESC, id DESC) WHERE review IS NULL;
CREATE INDEX memory_record_by_expiry ON memory_record (tenant_id, valid_until) WHERE status = 'active' AND valid_until IS NOT NULL;
CREATE INDEX memory_record_in_review ON memory_record (tenant_id, recorded_at) WHERE review IS NOT NULL AND status = 'active';
SELECT kindmem_protect('memory_record', 'SELECT, INSERT');
-- Everything that may ever change; subject, evidence and bindings only on a tombstone, where erasure puts keyed hashes.
GRANT UPDATE (
  subject_id, evidence_ref, observations, level, bindings_text, bindings_hash, valid_from, valid_until, broadened, status,
  retain_value, deleted_at, deleted_reason, trust, review, review_reason, confirmed_at, disputed_at, hold_count,
  changed_at, ended_at, request_digest
) ON memory_record TO kindmem_app;

CREATE FUNCTION memory_record_moves_forward() RETURNS trigger
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
CREATE TRIGGER memory_record_moves_forward BEFORE UPDATE ON memory_record
  FOR EACH ROW EXECUTE FUNCTION memory_record_moves_forward();
CREATE TRIGGER memory_record_never_removed BEFORE DELETE ON memory_record
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();
CREATE TRIGGER memory_record_never_truncated BEFORE TRUNCATE ON memory_record
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();

-- The one place of a value. Absent for a policy, a tombstone, and what expired without the wish to keep it.
CREATE TABLE record_value (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  value_text text NOT NULL,
  CONSTRAINT record_value_pkey PRIMARY KEY (tenant_id, record_id),
  CONSTRAINT record_value_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
);
SELECT kindmem_protect('record_value', 'SELECT, INSERT, DELETE');

-- After the statement, so that a record and its value may come in one.
CREATE FUNCTION record_value_is_of_what_has_one() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM memory_record r WHERE r.tenant_id = NEW.tenant_id AND r.id = NEW.record_id
             AND (r.authority = 'policy' OR r.status = 'deleted')) THEN
    RAISE EXCEPTION 'neither a policy nor a tombstone has a value'
      USING ERRCODE = '23514', CONSTRAINT = 'record_value_is_of_what_has_one', TABLE = 'record_value';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER record_value_is_of_what_has_one AFTER INSERT ON record_value
  FOR EACH ROW EXECUTE FUNCTION record_value_is_of_what_has_one();

-- A copy encrypted with a key outside the database: for a hold until its release, for an undo until its deadline.
CREATE TABLE sealed_copy (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  purpose text NOT NULL CONSTRAINT sealed_copy_purpose_is_known CHECK (purpose IN ('hold', 'undo')),
  receipt_number text,
  nonce bytea NOT NULL CONSTRAINT sealed_copy_nonce_has_length CHECK (octet_length(nonce) = 12),
  ciphertext bytea NOT NULL,
  sealed_at timestamptz NOT NULL,
  destroy_after timestamptz,
  CONSTRAINT sealed_copy_pkey PRIMARY KEY (tenant_id, record_id, purpose),
  CONSTRAINT sealed_copy_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id),
  CONSTRAINT sealed_copy_of_an_undo_ends CHECK (purpose <> 'undo' OR (destroy_after IS NOT NULL AND receipt_number IS NOT NULL))
);
CREATE INDEX sealed_copy_by_deadline ON sealed_copy (tenant_id, destroy_after) WHERE destroy_after IS NOT NULL;
CREATE INDEX sealed_copy_by_receipt ON sealed_copy (tenant_id, receipt_number) WHERE receipt_number IS NOT NULL;
SELECT kindmem_protect('sealed_copy', 'SELECT, INSERT, DELETE');

-- The backstop of every destructive path: what is held goes only once a sealed copy of it exists, and that stays.
CREATE FUNCTION record_value_held_is_sealed() RETURNS trigger
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
CREATE TRIGGER record_value_held_is_sealed BEFORE DELETE ON record_value
  FOR EACH ROW EXECUTE FUNCTION record_value_held_is_sealed();
CREATE TRIGGER sealed_copy_of_a_hold_stays BEFORE DELETE ON sealed_copy
  FOR EACH ROW EXECUTE FUNCTION record_value_held_is_sealed();

-- What an active record said before a change, for questions about a past moment. Written by the trigger alone.
CREATE TABLE record_past (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  row_version integer NOT NULL,
  from_at timestamptz NOT NULL,
  until_at timestamptz NOT NULL,
  level text NOT NULL,
  bindings_text text NOT NULL,
  valid_from date,
  valid_until date,
  observations integer NOT NULL,
  confirmed_at timestamptz,
  disputed_at timestamptz,
  trust text NOT NULL,
  CONSTRAINT record_past_pkey PRIMARY KEY (tenant_id, record_id, row_version),
  CONSTRAINT record_past_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id),
  CONSTRAINT record_past_times_in_order CHECK (from_at <= until_at)
);
SELECT kindmem_protect('record_past', 'SELECT, INSERT, DELETE');

CREATE FUNCTION memory_record_keeps_its_past() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.status = 'deleted' THEN
    DELETE FROM record_past p WHERE p.tenant_id = NEW.tenant_id AND p.record_id = NEW.id;
  ELSIF OLD.status = 'active' AND OLD.review IS NULL AND NEW.version_from <> OLD.version_from THEN
    INSERT INTO record_past (tenant_id, record_id, row_version, from_at, until_at, level, bindings_text, valid_from, valid_until,
                             observations, confirmed_at, disputed_at, trust)
    VALUES (OLD.tenant_id, OLD.id, OLD.row_version, OLD.version_from, NEW.version_from, OLD.level, OLD.bindings_text,
            OLD.valid_from, OLD.valid_until, OLD.observations, OLD.confirmed_at, OLD.disputed_at, OLD.trust);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER memory_record_keeps_its_past AFTER UPDATE ON memory_record
  FOR EACH ROW EXECUTE FUNCTION memory_record_keeps_its_past();

-- The hot row: one update a recall, within its page.
CREATE TABLE record_usage (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  use_count bigint NOT NULL DEFAULT 0 CONSTRAINT record_usage_count_is_not_negative CHECK (use_count >= 0),
  last_used_at timestamptz,
  CONSTRAINT record_usage_pkey PRIMARY KEY (tenant_id, record_id),
  CONSTRAINT record_usage_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
) WITH (fillfactor = 50);
SELECT kindmem_protect('record_usage', 'SELECT, INSERT, UPDATE');

-- No foreign key to the parent: it may come later, or be one that the writer can't read.
CREATE TABLE record_lineage (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  parent_id text NOT NULL CONSTRAINT record_lineage_parent_has_length CHECK (length(parent_id) BETWEEN 1 AND 256),
  position smallint NOT NULL,
  CONSTRAINT record_lineage_pkey PRIMARY KEY (tenant_id, record_id, parent_id),
  CONSTRAINT record_lineage_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id),
  CONSTRAINT record_lineage_names_another CHECK (record_id <> parent_id)
);
CREATE INDEX record_lineage_by_parent ON record_lineage (tenant_id, parent_id);
SELECT kindmem_protect('record_lineage', 'SELECT, INSERT');

-- A chain, never a fork: one successor a record.
CREATE TABLE record_supersession (
  tenant_id uuid NOT NULL,
  superseded_id text NOT NULL,
  successor_id text NOT NULL,
  superseded_at timestamptz NOT NULL,
  CONSTRAINT record_supersession_one_successor PRIMARY KEY (tenant_id, superseded_id),
  CONSTRAINT record_supersession_of_record FOREIGN KEY (tenant_id, superseded_id) REFERENCES memory_record (tenant_id, id),
  CONSTRAINT record_supersession_by_record FOREIGN KEY (tenant_id, successor_id) REFERENCES memory_record (tenant_id, id),
  CONSTRAINT record_supersession_by_another CHECK (superseded_id <> successor_id)
);
CREATE INDEX record_supersession_by_successor ON record_supersession (tenant_id, successor_id);
SELECT kindmem_protect('record_supersession', 'SELECT, INSERT');

-- From which runs an inference was observed, so that one run counts once.
CREATE TABLE record_observation (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  run_key text NOT NULL,
  observed_at timestamptz NOT NULL,
  CONSTRAINT record_observation_pkey PRIMARY KEY (tenant_id, record_id, run_key),
  CONSTRAINT record_observation_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
);
SELECT kindmem_protect('record_observation', 'SELECT, INSERT, DELETE');

-- Which event types a record listens for; what emit looks up.
CREATE TABLE record_listener (
  tenant_id uuid NOT NULL,
  event_type text COLLATE "C" NOT NULL,
  record_id text NOT NULL,
  CONSTRAINT record_listener_pkey PRIMARY KEY (tenant_id, event_type, record_id),
  CONSTRAINT record_listener_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
);
SELECT kindmem_protect('record_listener', 'SELECT, INSERT');

-- The words of active records. A record that ends, or waits for review, has none.
CREATE TABLE record_document (
  tenant_id uuid NOT NULL,
  record_id text NOT NULL,
  lexemes text[] COLLATE "C" NOT NULL,
  CONSTRAINT record_document_pkey PRIMARY KEY (tenant_id, record_id),
  CONSTRAINT record_document_belongs_to_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
);
SELECT kindmem_protect('record_document', 'SELECT, INSERT, DELETE');

-- Which records hold a word: one B-tree, whose comparisons row-level security leaves usable. The trigger keeps it equal to the
-- documents, which have the foreign key.
CREATE TABLE record_posting (
  tenant_id uuid NOT NULL,
  lexeme text COLLATE "C" NOT NULL,
  record_id text NOT NULL,
  CONSTRAINT record_posting_pkey PRIMARY KEY (tenant_id, lexeme, record_id)
);
SELECT kindmem_protect('record_posting', 'SELECT, INSERT, DELETE');

CREATE FUNCTION record_document_has_its_postings() RETURNS trigger
LANGUAGE plpgsql SET enable_seqscan = off
AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM record_posting p
    WHERE p.tenant_id = OLD.tenant_id AND p.lexeme = ANY (OLD.lexemes) AND p.record_id = OLD.record_id;
  ELSE
    INSERT INTO record_posting (tenant_id, lexeme, record_id)
    SELECT NEW.tenant_id, l, NEW.record_id FROM unnest(NEW.lexemes) AS l;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER record_document_has_its_postings AFTER INSERT OR DELETE ON record_document
  FOR EACH ROW EXECUTE FUNCTION record_document_has_its_postings();

-- What happened to a record: its history, in order.
CREATE TABLE record_act (
  tenant_id uuid NOT NULL,
  act_id uuid NOT NULL,
  record_id text NOT NULL,
  act text NOT NULL,
  is_main boolean NOT NULL,
  from_record_id text,
  from_status text,
  to_status text NOT NULL,
  actor text NOT NULL,
  actor_role text NOT NULL,
  acted_at timestamptz NOT NULL,
  reason_code text NOT NULL,
  reason text,
  scope_text text NOT NULL,
  receipt_number text,
  log_entry_id text NOT NULL,
  CONSTRAINT record_act_pkey PRIMARY KEY (tenant_id, record_id, act_id),
  CONSTRAINT record_act_of_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id)
);
CREATE INDEX record_act_by_act ON record_act (tenant_id, act_id);
CREATE INDEX record_act_by_origin ON record_act (tenant_id, from_record_id) WHERE from_record_id IS NOT NULL;
SELECT kindmem_protect('record_act', 'SELECT, INSERT');
GRANT UPDATE (reason, scope_text) ON record_act TO kindmem_app;

-- A person's word is used once.
CREATE TABLE used_word (
  tenant_id uuid NOT NULL,
  log_entry_id text NOT NULL,
  act_id uuid NOT NULL,
  used_at timestamptz NOT NULL,
  CONSTRAINT used_word_once PRIMARY KEY (tenant_id, log_entry_id),
  CONSTRAINT used_word_is_an_entry FOREIGN KEY (tenant_id, log_entry_id) REFERENCES log_entry (tenant_id, id)
);
SELECT kindmem_protect('used_word', 'SELECT, INSERT');

-- Keyed digests of what was forgotten, retired, or may not be inferred; the key lies outside the database.
CREATE TABLE forgotten_fingerprint (
  tenant_id uuid NOT NULL CONSTRAINT forgotten_fingerprint_belongs_to_tenant REFERENCES tenant (id),
  digest bytea NOT NULL CONSTRAINT forgotten_fingerprint_has_length CHECK (octet_length(digest) = 32),
  kind text NOT NULL CONSTRAINT forgotten_fingerprint_kind_is_known
    CHECK (kind IN ('forgotten-key', 'forgotten-value', 'retired-value', 'never-infer')),
  record_id text NOT NULL,
  receipt_number text,
  made_at timestamptz NOT NULL,
  CONSTRAINT forgotten_fingerprint_pkey PRIMARY KEY (tenant_id, digest, kind, record_id)
);
CREATE INDEX forgotten_fingerprint_by_receipt ON forgotten_fingerprint (tenant_id, receipt_number) WHERE receipt_number IS NOT NULL;
SELECT kindmem_protect('forgotten_fingerprint', 'SELECT, INSERT, DELETE');

-- What a person gets for an act: number, what changed, until when it can be undone. Ids and keyed digests, no values.
CREATE TABLE receipt (
  tenant_id uuid NOT NULL,
  number text NOT NULL CONSTRAINT receipt_number_has_shape CHECK (number ~ '^R-[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}$'),
  act_id uuid NOT NULL,
  route text NOT NULL,
  record_id text NOT NULL,
  before_ids text[] NOT NULL DEFAULT '{}',
  after_ids text[] NOT NULL DEFAULT '{}',
  before_digest bytea,
  after_digest bytea,
  before_scope_text text NOT NULL,
  scope_text text NOT NULL,
  actor text NOT NULL,
  actor_role text NOT NULL,
  reason text,
  statement text,
  evidence_ref text NOT NULL,
  log_entry_id text NOT NULL,
  log_entry_hash bytea NOT NULL,
  made_at timestamptz NOT NULL,
  undo_until timestamptz,
  undone_at timestamptz,
  undone_by text,
  CONSTRAINT receipt_pkey PRIMARY KEY (tenant_id, number),
  CONSTRAINT receipt_of_record FOREIGN KEY (tenant_id, record_id) REFERENCES memory_record (tenant_id, id),
  CONSTRAINT receipt_undone_by_a_receipt CHECK ((undone_at IS NULL) = (undone_by IS NULL))
);
CREATE INDEX receipt_by_record ON receipt (tenant_id, record_id, made_at);
SELECT kindmem_protect('receipt', 'SELECT, INSERT');
GRANT UPDATE (undone_at, undone_by, reason, statement, before_scope_text, scope_text, evidence_ref) ON receipt TO kindmem_app;

-- Acts that speak for a person without their word: they change nothing until someone decides.
CREATE TABLE pending_act (
  tenant_id uuid NOT NULL CONSTRAINT pending_act_belongs_to_tenant REFERENCES tenant (id),
  id text NOT NULL,
  act text NOT NULL,
  record_id text,
  subject_type text,
  subject_id text,
  key text,
  body_text text,
  reason_code text NOT NULL,
  asked_by text NOT NULL,
  asked_by_role text NOT NULL,
  asked_at timestamptz NOT NULL,
  decided_at timestamptz,
  decided_by text,
  decision text CONSTRAINT pending_act_decision_is_known CHECK (decision IN ('approved', 'rejected', 'forgotten')),
  CONSTRAINT pending_act_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT pending_act_decided_says_how
    CHECK ((decided_at IS NULL) = (decision IS NULL) AND (decided_at IS NULL) = (decided_by IS NULL)),
  CONSTRAINT pending_act_decided_keeps_no_body CHECK (decision IS NULL OR body_text IS NULL)
);
CREATE INDEX pending_act_waiting ON pending_act (tenant_id, asked_at) WHERE decided_at IS NULL;
CREATE INDEX pending_act_by_record ON pending_act (tenant_id, record_id) WHERE record_id IS NOT NULL;
CREATE INDEX pending_act_by_subject ON pending_act (tenant_id, subject_id, key) WHERE subject_id IS NOT NULL;
SELECT kindmem_protect('pending_act', 'SELECT, INSERT');
GRANT UPDATE (subject_id, body_text, decided_at, decided_by, decision) ON pending_act TO kindmem_app;

-- The named ways to a correction. The seven built-in ones are in the program; a row with such a name rewords it.
CREATE TABLE correction_route (
  tenant_id uuid NOT NULL CONSTRAINT correction_route_belongs_to_tenant REFERENCES tenant (id),
  name text NOT NULL CONSTRAINT correction_route_name_has_length CHECK (length(name) BETWEEN 1 AND 256),
  label text NOT NULL CONSTRAINT correction_route_label_has_length CHECK (length(label) BETWEEN 1 AND 256),
  description text NOT NULL DEFAULT '',
  audience text NOT NULL DEFAULT 'person' CONSTRAINT correction_route_audience_is_known CHECK (audience IN ('person', 'admin')),
  url_template text,
  may_broaden boolean NOT NULL DEFAULT true,
  needs_evidence boolean NOT NULL DEFAULT false,
  is_configured boolean NOT NULL,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  updated_at timestamptz NOT NULL,
  updated_by text NOT NULL,
  CONSTRAINT correction_route_pkey PRIMARY KEY (tenant_id, name),
  CONSTRAINT correction_route_template_names_the_record CHECK (url_template IS NULL OR position('{record_id}' IN url_template) > 0)
);
SELECT kindmem_protect('correction_route', 'SELECT, INSERT, UPDATE');

-- Where the values of policies may come from.
CREATE TABLE policy_source (
  tenant_id uuid NOT NULL CONSTRAINT policy_source_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  match text NOT NULL CONSTRAINT policy_source_match_has_length CHECK (length(match) BETWEEN 1 AND 2048),
  fetch_url text NOT NULL CONSTRAINT policy_source_fetch_url_has_length CHECK (length(fetch_url) BETWEEN 1 AND 2048),
  pointer text NOT NULL DEFAULT '' CONSTRAINT policy_source_pointer_has_shape CHECK (pointer = '' OR starts_with(pointer, '/')),
  is_enabled boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  updated_at timestamptz NOT NULL,
  updated_by text NOT NULL,
  CONSTRAINT policy_source_pkey PRIMARY KEY (tenant_id, id)
);
-- A digest, since a match may be longer than an index row.
CREATE UNIQUE INDEX policy_source_once_per_match ON policy_source (tenant_id, md5(match));
SELECT kindmem_protect('policy_source', 'SELECT, INSERT, UPDATE');
