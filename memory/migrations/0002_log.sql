-- The run log: one head row a run (the lock of an append), and entries that are never changed.

CREATE TABLE run_head (
  tenant_id uuid NOT NULL CONSTRAINT run_head_belongs_to_tenant REFERENCES tenant (id),
  run_id text NOT NULL CONSTRAINT run_head_id_has_length CHECK (length(run_id) BETWEEN 1 AND 256),
  next_sequence bigint NOT NULL CONSTRAINT run_head_sequence_is_positive CHECK (next_sequence > 0),
  head_hash bytea NOT NULL CONSTRAINT run_head_hash_has_length CHECK (octet_length(head_hash) = 32),
  -- Of the newest entry; the statement that appends hands it on to the row it inserts.
  prev_hash bytea NOT NULL CONSTRAINT run_head_prev_hash_has_length CHECK (octet_length(prev_hash) = 32),
  entry_count bigint NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  CONSTRAINT run_head_pkey PRIMARY KEY (tenant_id, run_id),
  CONSTRAINT run_head_counts_every_entry CHECK (entry_count = next_sequence),
  CONSTRAINT run_head_times_in_order CHECK (first_at <= last_at)
);
CREATE INDEX run_head_by_start ON run_head (tenant_id, first_at DESC, run_id DESC);
SELECT kindmem_protect('run_head', 'SELECT, INSERT, UPDATE');

CREATE TABLE log_entry (
  tenant_id uuid NOT NULL,
  run_id text NOT NULL,
  sequence bigint NOT NULL CONSTRAINT log_entry_sequence_starts_at_zero CHECK (sequence >= 0),
  id text NOT NULL CONSTRAINT log_entry_id_has_length CHECK (length(id) BETWEEN 1 AND 256),
  kind text NOT NULL CONSTRAINT log_entry_kind_is_known CHECK (kind IN (
    'user-message', 'agent-message', 'system-message', 'tool-call', 'tool-result', 'internal-thought', 'retrieval',
    'artifact-produced', 'event-emitted', 'event-received', 'guardrail-triggered', 'wait-suspended', 'wait-resumed')),
  scope_text text NOT NULL,
  actor text CONSTRAINT log_entry_actor_has_length CHECK (length(actor) BETWEEN 1 AND 256),
  recorded_at timestamptz(3) NOT NULL,
  payload_text text,
  payload_salt text,
  content_hash bytea CONSTRAINT log_entry_content_hash_has_length CHECK (octet_length(content_hash) = 32),
  prev_hash bytea NOT NULL CONSTRAINT log_entry_prev_hash_has_length CHECK (octet_length(prev_hash) = 32),
  entry_hash bytea NOT NULL CONSTRAINT log_entry_hash_has_length CHECK (octet_length(entry_hash) = 32),
  hash_version smallint NOT NULL DEFAULT 1 CONSTRAINT log_entry_hash_version_is_known CHECK (hash_version IN (1, 2)),
  caused_by text CONSTRAINT log_entry_cause_has_length CHECK (length(caused_by) BETWEEN 1 AND 256),
  payload_erased_at timestamptz,
  writer text NOT NULL,
  writer_role text NOT NULL,
  -- The read guard compares these; generated, so they can't drift from the hashed scope.
  user_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'userId') STORED,
  org_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'orgId') STORED,
  project_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'projectId') STORED,
  thread_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'threadId') STORED,
  participant_id text GENERATED ALWAYS AS ((scope_text::jsonb) ->> 'participantId') STORED,
  CONSTRAINT log_entry_pkey PRIMARY KEY (tenant_id, run_id, sequence),
  CONSTRAINT log_entry_id_is_unique UNIQUE (tenant_id, id),
  -- Column order: with run_id second, the planner of a young table walks a whole run by this index to find one sequence.
  CONSTRAINT log_entry_has_one_successor UNIQUE (tenant_id, prev_hash, run_id),
  CONSTRAINT log_entry_belongs_to_run FOREIGN KEY (tenant_id, run_id) REFERENCES run_head (tenant_id, run_id),
  CONSTRAINT log_entry_erased_has_no_payload
    CHECK (payload_erased_at IS NULL OR (payload_text IS NULL AND payload_salt IS NULL)),
  CONSTRAINT log_entry_salt_goes_with_version_2
    CHECK (payload_salt IS NULL OR hash_version = 2),
  CONSTRAINT log_entry_payload_is_hashed
    CHECK (payload_text IS NULL OR content_hash IS NOT NULL)
);
SELECT kindmem_protect('log_entry', 'SELECT, INSERT');
GRANT UPDATE (payload_text, payload_salt, payload_erased_at) ON log_entry TO kindmem_app;

-- Contiguous and linked, whoever inserts: entry n names the hash of entry n - 1, entry 0 names the zero hash.
CREATE FUNCTION log_entry_continues_chain() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  previous bytea;
BEGIN
  IF NEW.sequence = 0 THEN
    previous := decode(repeat('00', 32), 'hex');
  ELSE
    -- The order is what makes the planner take the primary key, also while the table has no statistics and all
    -- indexes that lead with the tenant look alike.
    SELECT e.entry_hash INTO previous FROM log_entry e
    WHERE e.tenant_id = NEW.tenant_id AND e.run_id = NEW.run_id
      AND e.sequence >= NEW.sequence - 1 AND e.sequence < NEW.sequence
    ORDER BY e.sequence LIMIT 1;
  END IF;
  IF previous IS DISTINCT FROM NEW.prev_hash THEN
    RAISE EXCEPTION 'the entry does not continue its run'
      USING ERRCODE = '23514', CONSTRAINT = 'log_entry_continues_chain', TABLE = 'log_entry';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER log_entry_continues_chain BEFORE INSERT ON log_entry
  FOR EACH ROW EXECUTE FUNCTION log_entry_continues_chain();

-- The one change there is: the payload and its salt go, the moment is set, nothing else moves.
CREATE FUNCTION log_entry_append_only() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF TG_OP = 'UPDATE'
     AND OLD.payload_erased_at IS NULL AND OLD.payload_text IS NOT NULL
     AND NEW.payload_erased_at IS NOT NULL AND NEW.payload_text IS NULL AND NEW.payload_salt IS NULL
     AND (OLD.tenant_id, OLD.run_id, OLD.sequence, OLD.id, OLD.kind, OLD.scope_text, OLD.recorded_at,
          OLD.prev_hash, OLD.entry_hash, OLD.hash_version, OLD.writer, OLD.writer_role)
       = (NEW.tenant_id, NEW.run_id, NEW.sequence, NEW.id, NEW.kind, NEW.scope_text, NEW.recorded_at,
          NEW.prev_hash, NEW.entry_hash, NEW.hash_version, NEW.writer, NEW.writer_role)
     AND OLD.actor IS NOT DISTINCT FROM NEW.actor
     AND OLD.content_hash IS NOT DISTINCT FROM NEW.content_hash
     AND OLD.caused_by IS NOT DISTINCT FROM NEW.caused_by THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'log entries are never changed or removed'
    USING ERRCODE = '23514', CONSTRAINT = 'log_entry_append_only', TABLE = 'log_entry';
END
$$;
CREATE TRIGGER log_entry_append_only BEFORE UPDATE OR DELETE ON log_entry
  FOR EACH ROW EXECUTE FUNCTION log_entry_append_only();
CREATE TRIGGER log_entry_never_truncated BEFORE TRUNCATE ON log_entry
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();
CREATE TRIGGER run_head_never_truncated BEFORE TRUNCATE ON run_head
  FOR EACH STATEMENT EXECUTE FUNCTION kindmem_refuse_change();

-- A head only moves forward.
CREATE FUNCTION run_head_moves_forward() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.tenant_id = OLD.tenant_id AND NEW.run_id = OLD.run_id AND NEW.first_at = OLD.first_at
     AND NEW.next_sequence > OLD.next_sequence AND NEW.last_at >= OLD.last_at THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a run head only moves forward'
    USING ERRCODE = '23514', CONSTRAINT = 'run_head_moves_forward', TABLE = 'run_head';
END
$$;
CREATE TRIGGER run_head_moves_forward BEFORE UPDATE ON run_head
  FOR EACH ROW EXECUTE FUNCTION run_head_moves_forward();
