DROP FUNCTION auth_lookup(text);
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
REVOKE ALL ON FUNCTION auth_lookup(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(text) TO kindmem_app, kindmem_owner;
ALTER FUNCTION auth_lookup(text) OWNER TO kindmem_search;
DROP TABLE quota_subject;
DROP TABLE quota_use;
ALTER TABLE api_key
  DROP COLUMN quota_window_seconds, DROP COLUMN quota_subjects, DROP COLUMN quota_bytes, DROP COLUMN quota_writes;
