-- Verifications that the worker does: what was asked, how far it came, what it found.
CREATE TABLE verification_job (
  tenant_id uuid NOT NULL CONSTRAINT verification_job_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  run_id text,
  from_sequence bigint,
  to_sequence bigint,
  is_incremental boolean NOT NULL DEFAULT false,
  status text NOT NULL DEFAULT 'queued' CONSTRAINT verification_job_status_is_known
    CHECK (status IN ('queued', 'running', 'done', 'cancelled', 'failed')),
  -- The size of the log of seals whose entries were taken on its signature; of the signed log that vouched in the end.
  since_size bigint,
  checkpoint_size bigint,
  runs_done integer NOT NULL DEFAULT 0,
  runs_total integer NOT NULL DEFAULT 0,
  entries_done bigint NOT NULL DEFAULT 0,
  entries_total bigint NOT NULL DEFAULT 0,
  state text,
  -- How many runs are in which state, and the reports of those that most need to be looked at.
  found_text text,
  asked_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  finished_at timestamptz,
  cancel_asked_at timestamptz,
  -- Who works on it, and until when others leave it to them.
  runner uuid,
  lease_until timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  CONSTRAINT verification_job_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT verification_job_is_about_a_range_of_a_run
    CHECK (run_id IS NOT NULL OR (from_sequence IS NULL AND to_sequence IS NULL)),
  CONSTRAINT verification_job_that_is_done_says_what_it_found
    CHECK ((status = 'done') = (state IS NOT NULL AND found_text IS NOT NULL)),
  CONSTRAINT verification_job_ends_once CHECK ((status IN ('done', 'cancelled', 'failed')) = (finished_at IS NOT NULL))
);
CREATE INDEX verification_job_newest_first ON verification_job (tenant_id, created_at DESC, id DESC);
CREATE INDEX verification_job_to_do ON verification_job (tenant_id, created_at) WHERE status IN ('queued', 'running');
SELECT kindmem_protect('verification_job', 'SELECT, INSERT, UPDATE');
