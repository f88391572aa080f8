-- Types whose facts are brought to a declaration that changed their searches: by the worker, a batch at a time, in order of ids.
-- The row goes when a look through all of them, begun later than any write could still follow the old declaration, finds nothing.
CREATE TABLE reindexing (
  tenant_id uuid NOT NULL,
  type text NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  after_fact_id text NOT NULL DEFAULT '',
  looked_through_at timestamptz,
  CONSTRAINT reindexing_pkey PRIMARY KEY (tenant_id, type),
  CONSTRAINT reindexing_is_of_declared_type FOREIGN KEY (tenant_id, type) REFERENCES fact_type (tenant_id, type)
);
SELECT kindmem_protect('reindexing', 'SELECT, INSERT, UPDATE, DELETE');

-- What the worker asks for every few seconds.
CREATE INDEX fact_freshness_in_background ON fact_freshness (tenant_id, priority DESC) WHERE strategy = 'background';
