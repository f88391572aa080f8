-- What the last verification of a run found, so that lists and pages can say it without walking the chain again.
CREATE TABLE run_verification (
  tenant_id uuid NOT NULL CONSTRAINT run_verification_belongs_to_tenant REFERENCES tenant (id),
  run_id text NOT NULL,
  state text NOT NULL,
  verified_to bigint NOT NULL,
  first_bad_sequence bigint,
  first_bad_class text,
  verified_at timestamptz NOT NULL DEFAULT now(),
  verified_by text NOT NULL,
  -- No foreign key to the head: a run whose head was removed is just what a verification must be able to say.
  CONSTRAINT run_verification_pkey PRIMARY KEY (tenant_id, run_id)
);
SELECT kindmem_protect('run_verification', 'SELECT, INSERT, UPDATE, DELETE');
