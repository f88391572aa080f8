-- The tenant wall: the function every policy compares with, and the one way a table is put behind it.

CREATE FUNCTION current_tenant_id() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT current_setting('kindmem.tenant_id')::uuid $$;
COMMENT ON FUNCTION current_tenant_id() IS
  'The tenant of this transaction. Raises when none is set: 42704 when never set, 22P02 when set back to empty.';

-- Puts a table behind the wall: forced row-level security with one policy, and exactly the grants named.
CREATE FUNCTION kindmem_protect(target regclass, grants text, tenant_column text DEFAULT 'tenant_id') RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
  EXECUTE format(
    'CREATE POLICY tenant_isolation ON %s TO kindmem_app, kindmem_owner '
    'USING (%I = current_tenant_id()) WITH CHECK (%I = current_tenant_id())',
    target, tenant_column, tenant_column);
  EXECUTE format('REVOKE ALL ON %s FROM kindmem_app', target);
  EXECUTE format('GRANT %s ON %s TO kindmem_app', grants, target);
END
$$;
REVOKE ALL ON FUNCTION kindmem_protect(regclass, text, text) FROM PUBLIC, kindmem_app;

-- Lets the definer role read a table across tenants, for the few functions it owns.
CREATE FUNCTION kindmem_definer_reads(target regclass) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  EXECUTE format('CREATE POLICY definer_reads ON %s FOR SELECT TO kindmem_search USING (true)', target);
  EXECUTE format('GRANT SELECT ON %s TO kindmem_search', target);
END
$$;
REVOKE ALL ON FUNCTION kindmem_definer_reads(regclass) FROM PUBLIC, kindmem_app;

-- Refuses what an append-only table must never see; attached per table and per event.
CREATE FUNCTION kindmem_refuse_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME
    USING ERRCODE = '23514', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
END
$$;

CREATE TABLE tenant (
  id uuid NOT NULL CONSTRAINT tenant_pkey PRIMARY KEY,
  slug text NOT NULL CONSTRAINT tenant_slug_is_unique UNIQUE
    CONSTRAINT tenant_slug_has_shape CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  name text NOT NULL CONSTRAINT tenant_name_is_named CHECK (length(name) BETWEEN 1 AND 200),
  time_zone text NOT NULL DEFAULT 'UTC',
  search_language text NOT NULL DEFAULT 'english',
  hash_version smallint NOT NULL DEFAULT 1
    CONSTRAINT tenant_hash_version_is_known CHECK (hash_version IN (1, 2)),
  undo_hours integer NOT NULL DEFAULT 24
    CONSTRAINT tenant_undo_hours_in_range CHECK (undo_hours BETWEEN 0 AND 720),
  settings jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz
);
SELECT kindmem_protect('tenant', 'SELECT, INSERT, UPDATE', 'id');
SELECT kindmem_definer_reads('tenant');

CREATE TABLE member (
  id uuid NOT NULL,
  tenant_id uuid NOT NULL CONSTRAINT member_belongs_to_tenant REFERENCES tenant (id),
  user_id integer NOT NULL CONSTRAINT member_is_user REFERENCES auth_user (id),
  role text NOT NULL CONSTRAINT member_role_is_known CHECK (role IN ('owner', 'admin', 'auditor', 'person')),
  role_granted_at timestamptz NOT NULL DEFAULT now(),
  role_granted_by text,
  subject_id text CONSTRAINT member_subject_has_length CHECK (length(subject_id) BETWEEN 1 AND 256),
  settings jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  left_at timestamptz,
  CONSTRAINT member_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT member_once_per_tenant UNIQUE (tenant_id, user_id),
  CONSTRAINT member_person_has_subject CHECK (role <> 'person' OR subject_id IS NOT NULL)
);
CREATE UNIQUE INDEX member_subject_is_one_person ON member (tenant_id, subject_id) WHERE subject_id IS NOT NULL AND left_at IS NULL;
CREATE INDEX member_by_user ON member (user_id);
SELECT kindmem_protect('member', 'SELECT, INSERT, UPDATE');
SELECT kindmem_definer_reads('member');

-- A tenant that has members keeps at least one owner. The tenant row is locked first, so two owners can't leave at once.
CREATE FUNCTION member_keeps_an_owner() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF OLD.role = 'owner' AND OLD.left_at IS NULL
     AND (TG_OP = 'DELETE' OR NEW.role <> 'owner' OR NEW.left_at IS NOT NULL) THEN
    PERFORM 1 FROM tenant WHERE id = OLD.tenant_id FOR UPDATE;
    IF NOT EXISTS (
      SELECT 1 FROM member m
      WHERE m.tenant_id = OLD.tenant_id AND m.id <> OLD.id AND m.role = 'owner' AND m.left_at IS NULL
    ) THEN
      RAISE EXCEPTION 'the last owner stays' USING ERRCODE = '23514', CONSTRAINT = 'member_keeps_an_owner', TABLE = 'member';
    END IF;
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END
$$;
CREATE TRIGGER member_keeps_an_owner BEFORE UPDATE OR DELETE ON member
  FOR EACH ROW EXECUTE FUNCTION member_keeps_an_owner();

CREATE TABLE api_key (
  id uuid NOT NULL,
  tenant_id uuid NOT NULL CONSTRAINT api_key_belongs_to_tenant REFERENCES tenant (id),
  prefix text NOT NULL CONSTRAINT api_key_prefix_is_unique UNIQUE
    CONSTRAINT api_key_prefix_has_shape CHECK (prefix ~ '^[a-z0-9]{10}$'),
  digest bytea NOT NULL CONSTRAINT api_key_digest_has_length CHECK (octet_length(digest) = 32),
  pepper_version smallint NOT NULL,
  name text NOT NULL CONSTRAINT api_key_name_is_named CHECK (name ~ '^[A-Za-z0-9._-]{1,64}$'),
  role text NOT NULL CONSTRAINT api_key_role_is_known CHECK (role IN ('agent', 'app', 'admin', 'auditor')),
  all_containers boolean NOT NULL DEFAULT false,
  projects text[] NOT NULL DEFAULT '{}',
  orgs text[] NOT NULL DEFAULT '{}',
  users text[] NOT NULL DEFAULT '{}',
  participants text[] NOT NULL DEFAULT '{}',
  threads text[] NOT NULL DEFAULT '{}',
  on_behalf_of text[] NOT NULL DEFAULT '{}',
  abilities text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  last_used_at timestamptz,
  CONSTRAINT api_key_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT api_key_abilities_are_known
    CHECK (abilities <@ ARRAY['read', 'write', 'append', 'emit', 'tenant-wide']),
  CONSTRAINT api_key_auditor_only_reads CHECK (role <> 'auditor' OR abilities <@ ARRAY['read'])
);
SELECT kindmem_protect('api_key', 'SELECT, INSERT, UPDATE');
SELECT kindmem_definer_reads('api_key');

CREATE TABLE idempotency_key (
  id uuid NOT NULL,
  tenant_id uuid NOT NULL CONSTRAINT idempotency_key_belongs_to_tenant REFERENCES tenant (id),
  principal text NOT NULL,
  key text NOT NULL CONSTRAINT idempotency_key_has_length CHECK (length(key) BETWEEN 1 AND 256),
  request_digest bytea NOT NULL,
  status smallint NOT NULL,
  answer text,
  item_ref text,
  scopes_text text,
  withheld_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  CONSTRAINT idempotency_key_pkey PRIMARY KEY (tenant_id, principal, key),
  CONSTRAINT idempotency_key_withheld_has_no_answer CHECK (withheld_at IS NULL OR answer IS NULL)
);
CREATE INDEX idempotency_key_by_item ON idempotency_key (tenant_id, item_ref) WHERE item_ref IS NOT NULL;
CREATE INDEX idempotency_key_by_expiry ON idempotency_key (tenant_id, expires_at);
SELECT kindmem_protect('idempotency_key', 'SELECT, INSERT, UPDATE, DELETE');

-- Before the tenant is known. Each returns only what the step needs; the caller compares the digest first.
CREATE FUNCTION auth_lookup(wanted_prefix text)
RETURNS TABLE (
  tenant_id uuid, slug text, time_zone text, search_language text, hash_version smallint, tenant_closed_at timestamptz,
  key_id uuid, digest bytea, pepper_version smallint, name text, role text, all_containers boolean,
  projects text[], orgs text[], users text[], participants text[], threads text[], on_behalf_of text[],
  abilities text[], is_expired boolean, is_revoked boolean, use_is_stale boolean
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
  SELECT k.tenant_id, t.slug, t.time_zone, t.search_language, t.hash_version, t.closed_at,
         k.id, k.digest, k.pepper_version, k.name, k.role, k.all_containers,
         k.projects, k.orgs, k.users, k.participants, k.threads, k.on_behalf_of,
         k.abilities, k.expires_at <= now(), k.revoked_at IS NOT NULL,
         k.last_used_at IS NULL OR k.last_used_at < now() - interval '5 minutes'
  FROM api_key k JOIN tenant t ON t.id = k.tenant_id
  WHERE k.prefix = wanted_prefix
$$;

CREATE FUNCTION tenant_id_of(wanted_slug text) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT id FROM tenant WHERE slug = wanted_slug $$;

CREATE FUNCTION tenant_ids() RETURNS TABLE (id uuid, slug text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT id, slug FROM tenant WHERE closed_at IS NULL ORDER BY slug $$;

CREATE FUNCTION memberships_of(wanted_user integer)
RETURNS TABLE (tenant_id uuid, slug text, tenant_name text, member_id uuid, role text, subject_id text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
  SELECT m.tenant_id, t.slug, t.name, m.id, m.role, m.subject_id
  FROM member m JOIN tenant t ON t.id = m.tenant_id
  WHERE m.user_id = wanted_user AND m.left_at IS NULL AND t.closed_at IS NULL
  ORDER BY t.slug
$$;

-- Grants before the owner changes: afterwards they are no longer ours to give.
REVOKE ALL ON FUNCTION auth_lookup(text), tenant_id_of(text), tenant_ids(), memberships_of(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(text), tenant_id_of(text), tenant_ids(), memberships_of(integer) TO kindmem_app, kindmem_owner;
ALTER FUNCTION auth_lookup(text) OWNER TO kindmem_search;
ALTER FUNCTION tenant_id_of(text) OWNER TO kindmem_search;
ALTER FUNCTION tenant_ids() OWNER TO kindmem_search;
ALTER FUNCTION memberships_of(integer) OWNER TO kindmem_search;
