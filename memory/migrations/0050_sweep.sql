-- Sweeps: what destroyed what was due, what stays as evidence, and how far a sweep has come.

CREATE TABLE sweep (
  tenant_id uuid NOT NULL CONSTRAINT sweep_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  is_dry_run boolean NOT NULL,
  status text NOT NULL CONSTRAINT sweep_status_is_known CHECK (status IN ('running', 'done', 'stopped')),
  started_by text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  stopped_because text,
  batches integer NOT NULL DEFAULT 0,
  due_count bigint NOT NULL DEFAULT 0,
  destroyed_count bigint NOT NULL DEFAULT 0,
  held_count bigint NOT NULL DEFAULT 0,
  counts_text text NOT NULL DEFAULT '{}',
  -- Where the next batch goes on, and who may take it: a runner that died loses its turn when its lease ends.
  branch text NOT NULL DEFAULT 'expired' CONSTRAINT sweep_branch_is_known CHECK (branch IN ('expired', 'deleted')),
  after_at timestamptz,
  after_id text,
  runner uuid,
  lease_until timestamptz,
  CONSTRAINT sweep_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT sweep_ended_says_when CHECK ((status = 'running') = (finished_at IS NULL)),
  CONSTRAINT sweep_dry_run_destroys_nothing CHECK (NOT is_dry_run OR destroyed_count = 0)
);
CREATE UNIQUE INDEX sweep_one_runs ON sweep (tenant_id) WHERE status = 'running';
CREATE INDEX sweep_newest_first ON sweep (tenant_id, started_at DESC, id DESC);
SELECT kindmem_protect('sweep', 'SELECT, INSERT, UPDATE');

-- The latest moment that a sweep has seen: a clock that is far from it has jumped.
CREATE TABLE sweep_clock (
  tenant_id uuid NOT NULL CONSTRAINT sweep_clock_belongs_to_tenant REFERENCES tenant (id),
  seen_at timestamptz NOT NULL,
  CONSTRAINT sweep_clock_pkey PRIMARY KEY (tenant_id)
);
SELECT kindmem_protect('sweep_clock', 'SELECT, INSERT, UPDATE');

-- What is left of a fact that was destroyed: ids, codes, counts, a keyed digest. Never content.
CREATE TABLE destroyed_fact (
  tenant_id uuid NOT NULL CONSTRAINT destroyed_fact_belongs_to_tenant REFERENCES tenant (id),
  cause text NOT NULL CONSTRAINT destroyed_fact_cause_is_known CHECK (cause IN ('sweep', 'erasure')),
  cause_id uuid NOT NULL,
  fact_id text NOT NULL,
  type text NOT NULL,
  rule text NOT NULL,
  first_written_at timestamptz NOT NULL,
  due_at timestamptz,
  revision_count integer NOT NULL CONSTRAINT destroyed_fact_had_a_revision CHECK (revision_count > 0),
  content_digest bytea CONSTRAINT destroyed_fact_digest_has_length CHECK (octet_length(content_digest) = 32),
  destroyed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT destroyed_fact_pkey PRIMARY KEY (tenant_id, cause_id, fact_id)
);
CREATE INDEX destroyed_fact_by_fact ON destroyed_fact (tenant_id, fact_id);
SELECT kindmem_protect('destroyed_fact', 'SELECT, INSERT');
CREATE TRIGGER destroyed_fact_never_changed BEFORE UPDATE OR DELETE ON destroyed_fact
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();
CREATE TRIGGER destroyed_fact_never_truncated BEFORE TRUNCATE ON destroyed_fact
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();

-- A sweep walks each in order and never goes back, so that what it must leave is passed once.
DROP INDEX fact_by_expiry;
CREATE INDEX fact_by_expiry ON fact (tenant_id, expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX fact_by_deletion ON fact (tenant_id, deleted_at, id) WHERE deleted_at IS NOT NULL;
