-- What proves a run against whoever can write to this database: the leaves of the tenant's log of seals, the signed heads of its
-- tree, and where each head was written down outside. Docs: docs/integrity.md.

CREATE TABLE seal_leaf (
  tenant_id uuid NOT NULL CONSTRAINT seal_leaf_belongs_to_tenant REFERENCES tenant (id),
  leaf_index bigint NOT NULL CONSTRAINT seal_leaf_index_starts_at_zero CHECK (leaf_index >= 0),
  -- Canonical JSON, exactly what is hashed.
  leaf_text text NOT NULL,
  leaf_hash bytea NOT NULL CONSTRAINT seal_leaf_hash_is_of_text
    CHECK (leaf_hash = sha256('\x00'::bytea || convert_to(leaf_text, 'UTF8'))),
  -- Roots of the subtrees that this leaf completes, from two leaves upwards: what makes proofs and appends cheap.
  node_hashes bytea NOT NULL CONSTRAINT seal_leaf_nodes_are_hashes CHECK (octet_length(node_hashes) % 32 = 0),
  -- Of a seal: the leaf hash of each entry that it covers, so that a proof of one entry is short and an edit is named exactly.
  record_hashes bytea CONSTRAINT seal_leaf_records_are_hashes CHECK (octet_length(record_hashes) % 32 = 0),
  appended_at timestamptz NOT NULL DEFAULT now(),
  leaf_type text NOT NULL GENERATED ALWAYS AS ((leaf_text::jsonb) ->> 'type') STORED,
  run_id text GENERATED ALWAYS AS ((leaf_text::jsonb) ->> 'runId') STORED,
  from_sequence bigint GENERATED ALWAYS AS (((leaf_text::jsonb) ->> 'fromSequence')::bigint) STORED,
  to_sequence bigint GENERATED ALWAYS AS (((leaf_text::jsonb) ->> 'toSequence')::bigint) STORED,
  CONSTRAINT seal_leaf_pkey PRIMARY KEY (tenant_id, leaf_index),
  CONSTRAINT seal_leaf_type_is_known CHECK (leaf_type IN (
    'seal/v1', 'run-closed', 'run-retired', 'erasure', 'key-rotated', 'hash-version-changed')),
  CONSTRAINT seal_leaf_of_seal_has_range CHECK (
    leaf_type <> 'seal/v1' OR (run_id IS NOT NULL AND from_sequence >= 0 AND to_sequence >= from_sequence
      AND octet_length(record_hashes) = (to_sequence - from_sequence + 1) * 32))
);
CREATE INDEX seal_leaf_by_run ON seal_leaf (tenant_id, run_id, to_sequence DESC) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX seal_leaf_seals_once ON seal_leaf (tenant_id, run_id, from_sequence) WHERE leaf_type = 'seal/v1';
ALTER TABLE seal_leaf ALTER COLUMN record_hashes SET STORAGE EXTERNAL; -- hashes don't compress
SELECT kindmem_protect('seal_leaf', 'SELECT, INSERT');

-- Contiguous, whoever inserts: a leaf has the index after the last one.
CREATE FUNCTION seal_leaf_continues_log() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.leaf_index > 0 AND NOT EXISTS (
    SELECT FROM seal_leaf l WHERE l.tenant_id = NEW.tenant_id AND l.leaf_index = NEW.leaf_index - 1
  ) THEN
    RAISE EXCEPTION 'the leaf does not continue the log'
      USING ERRCODE = '23514', CONSTRAINT = 'seal_leaf_continues_log', TABLE = 'seal_leaf';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER seal_leaf_continues_log BEFORE INSERT ON seal_leaf
  FOR EACH ROW EXECUTE FUNCTION seal_leaf_continues_log();
CREATE TRIGGER seal_leaf_append_only BEFORE UPDATE OR DELETE ON seal_leaf
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();
CREATE TRIGGER seal_leaf_never_truncated BEFORE TRUNCATE ON seal_leaf
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();

CREATE TABLE checkpoint (
  tenant_id uuid NOT NULL CONSTRAINT checkpoint_belongs_to_tenant REFERENCES tenant (id),
  size bigint NOT NULL CONSTRAINT checkpoint_size_is_positive CHECK (size > 0),
  origin text NOT NULL,
  root_hash bytea NOT NULL CONSTRAINT checkpoint_root_has_length CHECK (octet_length(root_hash) = 32),
  -- The signed note, C2SP tlog-checkpoint, byte for byte.
  note_text text NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT checkpoint_pkey PRIMARY KEY (tenant_id, size), -- one root for one size
  CONSTRAINT checkpoint_covers_leaves FOREIGN KEY (tenant_id, last_leaf) REFERENCES seal_leaf (tenant_id, leaf_index),
  last_leaf bigint NOT NULL CONSTRAINT checkpoint_last_leaf_is_of_size CHECK (last_leaf = size - 1)
);
SELECT kindmem_protect('checkpoint', 'SELECT, INSERT');
CREATE TRIGGER checkpoint_append_only BEFORE UPDATE OR DELETE ON checkpoint
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();
CREATE TRIGGER checkpoint_never_truncated BEFORE TRUNCATE ON checkpoint
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();

-- Where a checkpoint was written down outside this database, and when: for people to find it. It proves nothing by itself.
CREATE TABLE anchor (
  tenant_id uuid NOT NULL,
  size bigint NOT NULL,
  place text NOT NULL CONSTRAINT anchor_place_is_named CHECK (length(place) BETWEEN 1 AND 300),
  -- What the place answered: a witness's cosignature line, a time stamp token in base64. Null for the anchor file.
  answer text,
  anchored_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT anchor_pkey PRIMARY KEY (tenant_id, size, place),
  CONSTRAINT anchor_is_of_checkpoint FOREIGN KEY (tenant_id, size) REFERENCES checkpoint (tenant_id, size)
);
SELECT kindmem_protect('anchor', 'SELECT, INSERT');
CREATE TRIGGER anchor_append_only BEFORE UPDATE OR DELETE ON anchor
  FOR EACH ROW EXECUTE FUNCTION kindmem_refuse_change();
CREATE TRIGGER anchor_never_truncated BEFORE TRUNCATE ON anchor
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();
