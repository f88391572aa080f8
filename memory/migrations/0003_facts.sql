-- Facts: the head is the lock and carries what reads filter on; revisions never change but for being closed;
-- content is its own row, so that erasing it and keeping the envelope never contradict.

CREATE TABLE fact_type (
  tenant_id uuid NOT NULL CONSTRAINT fact_type_belongs_to_tenant REFERENCES tenant (id),
  type text NOT NULL CONSTRAINT fact_type_has_length CHECK (length(type) BETWEEN 1 AND 256),
  keyword boolean NOT NULL DEFAULT true,
  semantic boolean NOT NULL DEFAULT true,
  embedding_model text,
  content_schema text,
  keep_days integer CONSTRAINT fact_type_keep_days_is_positive CHECK (keep_days BETWEEN 1 AND 36500),
  delete_after_days integer CONSTRAINT fact_type_delete_after_is_positive CHECK (delete_after_days BETWEEN 1 AND 36500),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text NOT NULL,
  CONSTRAINT fact_type_pkey PRIMARY KEY (tenant_id, type)
);
SELECT kindmem_protect('fact_type', 'SELECT, INSERT, UPDATE');

CREATE TABLE fact (
  tenant_id uuid NOT NULL CONSTRAINT fact_belongs_to_tenant REFERENCES tenant (id),
  id text NOT NULL CONSTRAINT fact_id_has_length CHECK (length(id) BETWEEN 1 AND 256),
  type text NOT NULL CONSTRAINT fact_type_name_has_length CHECK (length(type) BETWEEN 1 AND 256),
  scope_text text NOT NULL,
  user_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'userId') STORED,
  org_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'orgId') STORED,
  project_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'projectId') STORED,
  thread_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'threadId') STORED,
  session_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'sessionId') STORED,
  participant_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'participantId') STORED,
  current_version integer NOT NULL CONSTRAINT fact_version_is_positive CHECK (current_version > 0),
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  keep_ends_at timestamptz,
  keep_reason text CONSTRAINT fact_keep_reason_is_known CHECK (keep_reason IN ('keep-until', 'keep-days')),
  unverified_until timestamptz,
  review text CONSTRAINT fact_review_is_known CHECK (review IN ('pending')),
  deleted_at timestamptz,
  hold_count integer NOT NULL DEFAULT 0 CONSTRAINT fact_hold_count_is_not_negative CHECK (hold_count >= 0),
  CONSTRAINT fact_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT fact_keep_window_says_why CHECK ((keep_ends_at IS NULL) = (keep_reason IS NULL)),
  CONSTRAINT fact_participant_needs_project
    CHECK ((scope_text::jsonb) ->> 'participantId' IS NULL OR (scope_text::jsonb) ->> 'projectId' IS NOT NULL)
);
-- Deleted facts too: a list as of an earlier time reads them.
CREATE INDEX fact_newest_first ON fact (tenant_id, created_at DESC, id DESC);
CREATE INDEX fact_by_type ON fact (tenant_id, type, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX fact_by_project ON fact (tenant_id, project_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX fact_by_org ON fact (tenant_id, org_id, created_at DESC, id DESC) WHERE org_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX fact_by_participant ON fact (tenant_id, participant_id) WHERE participant_id IS NOT NULL;
CREATE INDEX fact_by_user ON fact (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX fact_by_expiry ON fact (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
SELECT kindmem_protect('fact', 'SELECT, INSERT, UPDATE, DELETE');

-- The one place that says how long a fact is kept and read: its own keepUntil, else its own keepDays, else the type's policy,
-- else the tenant's default; an unverified fact stops being read at the end of its window, whatever else it says.
-- Days are 24 hours from the first write. A hold is stronger than all of it, and is asked wherever something is destroyed.
CREATE FUNCTION fact_windows(
  first_write timestamptz, keep_until timestamptz, keep_days integer, type_keep_days integer, type_delete_after_days integer,
  tenant_keep_days integer, tenant_delete_after_days integer, unverified_until timestamptz
) RETURNS TABLE (keep_ends_at timestamptz, keep_reason text, expires_at timestamptz)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN keep_until IS NOT NULL THEN keep_until ELSE first_write + kept * interval '24 hours' END,
         CASE WHEN keep_until IS NOT NULL THEN 'keep-until' WHEN kept IS NOT NULL THEN 'keep-days' END,
         least(CASE WHEN keep_until IS NOT NULL THEN keep_until ELSE first_write + greatest(kept, read) * interval '24 hours' END,
               unverified_until)
  FROM (
    SELECT CASE WHEN keep_days IS NOT NULL THEN keep_days
                WHEN coalesce(type_keep_days, type_delete_after_days) IS NOT NULL THEN type_keep_days
                ELSE tenant_keep_days END AS kept,
           CASE WHEN keep_days IS NOT NULL THEN NULL
                WHEN coalesce(type_keep_days, type_delete_after_days) IS NOT NULL THEN type_delete_after_days
                ELSE tenant_delete_after_days END AS read
  ) w
$$;

CREATE TABLE fact_revision (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  version integer NOT NULL CONSTRAINT fact_revision_version_is_positive CHECK (version > 0),
  revision_id text NOT NULL,
  supersedes text,
  recorded_at timestamptz NOT NULL,
  content_hash bytea CONSTRAINT fact_revision_hash_has_length CHECK (octet_length(content_hash) = 32),
  size_bytes bigint CONSTRAINT fact_revision_size_is_not_negative CHECK (size_bytes >= 0),
  content_ref text,
  retention_text text,
  source_text text,
  subjects_text text,
  cause_ids text[] NOT NULL DEFAULT '{}',
  valid_from timestamptz,
  valid_until timestamptz,
  observed_at timestamptz,
  trust text NOT NULL CONSTRAINT fact_revision_trust_is_known CHECK (trust IN ('unverified', 'asserted', 'verified')),
  verified_by text,
  verified_at timestamptz,
  attributed_kind text NOT NULL CONSTRAINT fact_revision_attribution_is_known
    CHECK (attributed_kind IN ('user', 'service', 'agent')),
  attributed_id text NOT NULL,
  generated_run_id text,
  written_by text NOT NULL,
  written_by_role text NOT NULL,
  invalidated_at timestamptz,
  invalidated_by text,
  invalidation_reason text CONSTRAINT fact_revision_reason_is_known
    CHECK (invalidation_reason IN ('superseded', 'deleted', 'erased', 'expired')),
  CONSTRAINT fact_revision_pkey PRIMARY KEY (tenant_id, fact_id, version),
  CONSTRAINT fact_revision_id_is_unique UNIQUE (tenant_id, revision_id),
  CONSTRAINT fact_revision_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id),
  CONSTRAINT fact_revision_inline_content_is_hashed
    CHECK (content_ref IS NOT NULL OR (content_hash IS NOT NULL AND size_bytes IS NOT NULL)),
  CONSTRAINT fact_revision_verified_names_who
    CHECK ((trust = 'verified') = (verified_by IS NOT NULL) AND (verified_by IS NULL) = (verified_at IS NULL)),
  CONSTRAINT fact_revision_closed_says_why
    CHECK ((invalidated_at IS NULL) = (invalidated_by IS NULL) AND (invalidated_at IS NULL) = (invalidation_reason IS NULL)),
  CONSTRAINT fact_revision_valid_times_in_order CHECK (valid_from IS NULL OR valid_until IS NULL OR valid_from <= valid_until),
  CONSTRAINT fact_revision_first_supersedes_nothing CHECK ((version = 1) = (supersedes IS NULL))
);
CREATE UNIQUE INDEX fact_revision_one_is_current ON fact_revision (tenant_id, fact_id) WHERE invalidated_at IS NULL;
SELECT kindmem_protect('fact_revision', 'SELECT, INSERT, DELETE');
GRANT UPDATE (invalidated_at, invalidated_by, invalidation_reason) ON fact_revision TO kindmem_app;

-- Versions are contiguous: revision n + 1 supersedes revision n, which is closed.
CREATE FUNCTION fact_revision_continues_fact() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.version > 1 AND NOT EXISTS (
    SELECT 1 FROM fact_revision r
    WHERE r.tenant_id = NEW.tenant_id AND r.fact_id = NEW.fact_id AND r.version = NEW.version - 1
      AND r.revision_id = NEW.supersedes AND r.invalidated_at IS NOT NULL
  ) THEN
    RAISE EXCEPTION 'a revision follows the one it supersedes'
      USING ERRCODE = '23514', CONSTRAINT = 'fact_revision_continues_fact', TABLE = 'fact_revision';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER fact_revision_continues_fact BEFORE INSERT ON fact_revision
  FOR EACH ROW EXECUTE FUNCTION fact_revision_continues_fact();

CREATE FUNCTION fact_revision_only_closes() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF OLD.invalidated_at IS NULL AND NEW.invalidated_at IS NOT NULL
     AND (to_jsonb(OLD) - 'invalidated_at' - 'invalidated_by' - 'invalidation_reason')
       = (to_jsonb(NEW) - 'invalidated_at' - 'invalidated_by' - 'invalidation_reason') THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a revision is never changed, only closed'
    USING ERRCODE = '23514', CONSTRAINT = 'fact_revision_only_closes', TABLE = 'fact_revision';
END
$$;
CREATE TRIGGER fact_revision_only_closes BEFORE UPDATE ON fact_revision
  FOR EACH ROW EXECUTE FUNCTION fact_revision_only_closes();

CREATE FUNCTION fact_keeps_identity() RETURNS trigger
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
CREATE TRIGGER fact_keeps_identity BEFORE UPDATE ON fact
  FOR EACH ROW EXECUTE FUNCTION fact_keeps_identity();

CREATE TABLE fact_content (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  version integer NOT NULL,
  content_text text NOT NULL,
  CONSTRAINT fact_content_pkey PRIMARY KEY (tenant_id, fact_id, version),
  CONSTRAINT fact_content_belongs_to_revision
    FOREIGN KEY (tenant_id, fact_id, version) REFERENCES fact_revision (tenant_id, fact_id, version)
);
SELECT kindmem_protect('fact_content', 'SELECT, INSERT, DELETE');

-- Freshness of a cached view: what a refresh moves without making a revision.
CREATE TABLE fact_freshness (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  strategy text NOT NULL CONSTRAINT fact_freshness_strategy_is_known CHECK (strategy IN ('on-read', 'background', 'manual')),
  handler text,
  priority integer NOT NULL DEFAULT 0,
  ttl_seconds bigint CONSTRAINT fact_freshness_ttl_is_not_negative CHECK (ttl_seconds >= 0),
  last_verified_at timestamptz,
  etag text,
  source_version text,
  last_attempt_at timestamptz,
  last_failure text,
  CONSTRAINT fact_freshness_pkey PRIMARY KEY (tenant_id, fact_id),
  CONSTRAINT fact_freshness_belongs_to_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id)
);
SELECT kindmem_protect('fact_freshness', 'SELECT, INSERT, UPDATE, DELETE');

CREATE TABLE fact_subject (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  version integer NOT NULL,
  position smallint NOT NULL,
  kind text NOT NULL CONSTRAINT fact_subject_kind_is_known CHECK (kind IN ('participant', 'user', 'external')),
  subject_id text NOT NULL CONSTRAINT fact_subject_id_has_length CHECK (length(subject_id) BETWEEN 1 AND 256),
  CONSTRAINT fact_subject_pkey PRIMARY KEY (tenant_id, fact_id, version, position),
  CONSTRAINT fact_subject_belongs_to_revision
    FOREIGN KEY (tenant_id, fact_id, version) REFERENCES fact_revision (tenant_id, fact_id, version)
);
CREATE INDEX fact_subject_by_person ON fact_subject (tenant_id, subject_id);
SELECT kindmem_protect('fact_subject', 'SELECT, INSERT, DELETE');

CREATE TABLE fact_cause (
  tenant_id uuid NOT NULL,
  fact_id text NOT NULL,
  version integer NOT NULL,
  position smallint NOT NULL,
  log_entry_id text NOT NULL CONSTRAINT fact_cause_id_has_length CHECK (length(log_entry_id) BETWEEN 1 AND 256),
  CONSTRAINT fact_cause_pkey PRIMARY KEY (tenant_id, fact_id, version, position),
  CONSTRAINT fact_cause_belongs_to_revision
    FOREIGN KEY (tenant_id, fact_id, version) REFERENCES fact_revision (tenant_id, fact_id, version)
);
CREATE INDEX fact_cause_by_entry ON fact_cause (tenant_id, log_entry_id);
SELECT kindmem_protect('fact_cause', 'SELECT, INSERT, DELETE');

CREATE TABLE legal_hold (
  tenant_id uuid NOT NULL CONSTRAINT legal_hold_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  matter text NOT NULL CONSTRAINT legal_hold_matter_is_named CHECK (length(matter) BETWEEN 1 AND 200),
  reason text NOT NULL CONSTRAINT legal_hold_reason_is_given CHECK (length(reason) BETWEEN 1 AND 2000),
  scope_text text NOT NULL,
  placed_by text NOT NULL,
  placed_at timestamptz NOT NULL DEFAULT now(),
  review_on date NOT NULL,
  released_at timestamptz,
  CONSTRAINT legal_hold_pkey PRIMARY KEY (tenant_id, id)
);
SELECT kindmem_protect('legal_hold', 'SELECT, INSERT, UPDATE');

CREATE TABLE fact_hold (
  tenant_id uuid NOT NULL,
  hold_id uuid NOT NULL,
  fact_id text NOT NULL,
  CONSTRAINT fact_hold_pkey PRIMARY KEY (tenant_id, hold_id, fact_id),
  CONSTRAINT fact_hold_belongs_to_hold FOREIGN KEY (tenant_id, hold_id) REFERENCES legal_hold (tenant_id, id),
  CONSTRAINT fact_hold_keeps_fact FOREIGN KEY (tenant_id, fact_id) REFERENCES fact (tenant_id, id)
);
CREATE INDEX fact_hold_by_fact ON fact_hold (tenant_id, fact_id);
SELECT kindmem_protect('fact_hold', 'SELECT, INSERT');

-- The backstop of every destructive path: nothing of a held fact goes, whoever asks.
CREATE FUNCTION fact_is_not_held() RETURNS trigger
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
CREATE TRIGGER fact_is_not_held BEFORE DELETE ON fact FOR EACH ROW EXECUTE FUNCTION fact_is_not_held();
CREATE TRIGGER fact_revision_is_not_held BEFORE DELETE ON fact_revision FOR EACH ROW EXECUTE FUNCTION fact_is_not_held();
CREATE TRIGGER fact_content_is_not_held BEFORE DELETE ON fact_content FOR EACH ROW EXECUTE FUNCTION fact_is_not_held();
CREATE TRIGGER fact_subject_is_not_held BEFORE DELETE ON fact_subject FOR EACH ROW EXECUTE FUNCTION fact_is_not_held();
CREATE TRIGGER fact_cause_is_not_held BEFORE DELETE ON fact_cause FOR EACH ROW EXECUTE FUNCTION fact_is_not_held();
