-- One row for the whole installation: a keyed digest of the keys it was set up with (memory/installation_keys.py).
CREATE TABLE installation_keys (
  is_only boolean NOT NULL DEFAULT true,
  digest bytea NOT NULL,
  CONSTRAINT installation_keys_pkey PRIMARY KEY (is_only),
  CONSTRAINT an_installation_has_one_set_of_keys CHECK (is_only),
  CONSTRAINT a_digest_of_keys_has_32_bytes CHECK (octet_length(digest) = 32)
);
-- Written once: whoever could change it could make other keys pass for the right ones.
REVOKE ALL ON installation_keys FROM kindmem_app;
GRANT SELECT, INSERT ON installation_keys TO kindmem_app;
