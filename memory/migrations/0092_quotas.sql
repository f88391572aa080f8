-- How much one key may write in a window of time, and how much it wrote. Null: no bound.
ALTER TABLE api_key
  ADD COLUMN quota_writes bigint CONSTRAINT api_key_quota_writes_is_positive CHECK (quota_writes > 0),
  ADD COLUMN quota_bytes bigint CONSTRAINT api_key_quota_bytes_is_positive CHECK (quota_bytes > 0),
  ADD COLUMN quota_subjects integer CONSTRAINT api_key_quota_subjects_is_positive CHECK (quota_subjects > 0),
  ADD COLUMN quota_window_seconds integer NOT NULL DEFAULT 3600
    CONSTRAINT api_key_quota_window_seconds_has_range CHECK (quota_window_seconds BETWEEN 1 AND 2678400);

-- One row a key: the window under way. Its lock is what counts writers at once exactly.
CREATE TABLE quota_use (
  tenant_id uuid NOT NULL CONSTRAINT quota_use_belongs_to_tenant REFERENCES tenant (id),
  key_prefix text NOT NULL,
  window_start timestamptz NOT NULL,
  writes bigint NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT quota_use_pkey PRIMARY KEY (tenant_id, key_prefix)
);
SELECT kindmem_protect('quota_use', 'SELECT, INSERT, UPDATE');

-- Whom a key wrote about in its window: keyed digests, so that nobody is named.
CREATE TABLE quota_subject (
  tenant_id uuid NOT NULL CONSTRAINT quota_subject_belongs_to_tenant REFERENCES tenant (id),
  key_prefix text NOT NULL,
  digest bytea NOT NULL,
  window_start timestamptz NOT NULL,
  CONSTRAINT quota_subject_pkey PRIMARY KEY (tenant_id, key_prefix, digest)
);
SELECT kindmem_protect('quota_subject', 'SELECT, INSERT, UPDATE, DELETE');

DROP FUNCTION auth_lookup(text);
CREATE FUNCTION auth_lookup(wanted_prefix text)
RETURNS TABLE (
  tenant_id uuid, slug text, time_zone text, search_language text, hash_version smallint, tenant_closed_at timestamptz,
  key_id uuid, digest bytea, pepper_version smallint, name text, role text, all_containers boolean,
  projects text[], orgs text[], users text[], participants text[], threads text[], on_behalf_of text[],
  abilities text[], is_expired boolean, is_revoked boolean, use_is_stale boolean,
  quota_writes bigint, quota_bytes bigint, quota_subjects integer, quota_window_seconds integer
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
  SELECT k.tenant_id, t.slug, t.time_zone, t.search_language, t.hash_version, t.closed_at,
         k.id, k.digest, k.pepper_version, k.name, k.role, k.all_containers,
         k.projects, k.orgs, k.users, k.participants, k.threads, k.on_behalf_of,
         k.abilities, k.expires_at <= now(), k.revoked_at IS NOT NULL,
         k.last_used_at IS NULL OR k.last_used_at < now() - interval '5 minutes',
         k.quota_writes, k.quota_bytes, k.quota_subjects, k.quota_window_seconds
  FROM api_key k JOIN tenant t ON t.id = k.tenant_id
  WHERE k.prefix = wanted_prefix
$$;
REVOKE ALL ON FUNCTION auth_lookup(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(text) TO kindmem_app, kindmem_owner;
ALTER FUNCTION auth_lookup(text) OWNER TO kindmem_search;
