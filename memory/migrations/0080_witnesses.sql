-- How each witness stands to a tenant's log. Its cosignatures are anchors, with the place 'witness:<name>'; this row only says what to
-- ask next, and what went wrong. It proves nothing.
CREATE TABLE witness_standing (
  tenant_id uuid NOT NULL CONSTRAINT witness_standing_belongs_to_tenant REFERENCES tenant (id),
  witness text NOT NULL,
  -- What it last cosigned: the log's origin and size. Size 0: nothing yet.
  origin text NOT NULL,
  cosigned_size bigint NOT NULL DEFAULT 0,
  -- Why it gave no cosignature, at which size of the log; null when it gave the last one asked for.
  failure text CONSTRAINT witness_standing_failure_is_known CHECK (failure IN (
    'unreachable', 'unavailable', 'fetch-refused', 'request-refused', 'key-not-trusted', 'log-not-known', 'answer-malformed',
    'bad-cosignature', 'inconsistent', 'ahead', 'conflict')),
  failed_size bigint,
  failed_at timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  retry_at timestamptz,
  CONSTRAINT witness_standing_pkey PRIMARY KEY (tenant_id, witness),
  CONSTRAINT witness_standing_failure_says_when
    CHECK ((failure IS NULL) = (failed_at IS NULL) AND (failure IS NULL) = (retry_at IS NULL) AND (failure IS NULL) = (failed_size IS NULL))
);
SELECT kindmem_protect('witness_standing', 'SELECT, INSERT, UPDATE');
