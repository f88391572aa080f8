-- Of the whole installation: when disk pages were cleared of what erasures took out of the tables, and what is still due.
CREATE TABLE page_maintenance (
  id uuid NOT NULL CONSTRAINT page_maintenance_pkey PRIMARY KEY,
  status text NOT NULL DEFAULT 'due' CONSTRAINT page_maintenance_status_is_known CHECK (status IN ('due', 'running', 'done', 'failed')),
  asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_at timestamptz,
  finished_at timestamptz,
  -- Tables that were written anew, and those too large for that: their pages keep old bytes until they are used again.
  rewritten_count integer NOT NULL DEFAULT 0,
  vacuumed_count integer NOT NULL DEFAULT 0,
  failure text,
  CONSTRAINT page_maintenance_started_says_when CHECK ((status = 'due') = (started_at IS NULL)),
  CONSTRAINT page_maintenance_ended_says_when CHECK ((status IN ('done', 'failed')) = (finished_at IS NOT NULL)),
  CONSTRAINT page_maintenance_failure_says_why CHECK ((status = 'failed') = (failure IS NOT NULL))
);
CREATE UNIQUE INDEX page_maintenance_one_is_due ON page_maintenance (status) WHERE status = 'due';
CREATE UNIQUE INDEX page_maintenance_one_runs ON page_maintenance (status) WHERE status = 'running';
CREATE INDEX page_maintenance_newest ON page_maintenance (started_at DESC) WHERE status = 'done';
REVOKE ALL ON page_maintenance FROM kindmem_app;
GRANT SELECT, INSERT, UPDATE ON page_maintenance TO kindmem_app;
