-- How entries of the log name people. `were-pseudonyms`: plainly again, and earlier ones not.
ALTER TABLE tenant ADD COLUMN log_ids text NOT NULL DEFAULT 'plain'
  CONSTRAINT tenant_log_ids_are_known CHECK (log_ids IN ('plain', 'pseudonyms', 'were-pseudonyms'));

-- What the log may have in place of the id that an erasure is about: entries that name it are refused meanwhile, too.
ALTER TABLE erasure
  ADD COLUMN selector_in_log text CONSTRAINT erasure_selector_in_log_has_length CHECK (length(selector_in_log) BETWEEN 1 AND 256),
  ADD CONSTRAINT erasure_completed_keeps_no_pseudonym CHECK (status <> 'completed' OR selector_in_log IS NULL);

CREATE OR REPLACE FUNCTION refuse_while_erasing(tenant uuid, people text[], thread text, fact_id text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(tenant));
  IF EXISTS (SELECT 1 FROM erasure e
             WHERE e.tenant_id = tenant AND e.status <> 'completed'
               AND CASE e.selector_kind WHEN 'conversation' THEN e.selector_id = thread WHEN 'fact' THEN e.selector_id = fact_id
                   ELSE e.selector_id = ANY (people) OR e.selector_in_log = ANY (people) END) THEN
    RAISE EXCEPTION 'an erasure is running' USING ERRCODE = '23514', CONSTRAINT = 'erasure_is_not_running', TABLE = 'erasure';
  END IF;
END
$$;

-- As before, and how the tenant's log names people.
DROP FUNCTION auth_lookup(text);
CREATE FUNCTION auth_lookup(wanted_prefix text)
RETURNS TABLE (
  tenant_id uuid, slug text, time_zone text, search_language text, hash_version smallint, tenant_closed_at timestamptz,
  key_id uuid, digest bytea, pepper_version smallint, name text, role text, all_containers boolean,
  projects text[], orgs text[], users text[], participants text[], threads text[], on_behalf_of text[],
  abilities text[], is_expired boolean, is_revoked boolean, use_is_stale boolean,
  quota_writes bigint, quota_bytes bigint, quota_subjects integer, quota_window_seconds integer,
  log_ids text
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
  SELECT k.tenant_id, t.slug, t.time_zone, t.search_language, t.hash_version, t.closed_at,
         k.id, k.digest, k.pepper_version, k.name, k.role, k.all_containers,
         k.projects, k.orgs, k.users, k.participants, k.threads, k.on_behalf_of,
         k.abilities, k.expires_at <= now(), k.revoked_at IS NOT NULL,
         k.last_used_at IS NULL OR k.last_used_at < now() - interval '5 minutes',
         k.quota_writes, k.quota_bytes, k.quota_subjects, k.quota_window_seconds,
         t.log_ids
  FROM api_key k JOIN tenant t ON t.id = k.tenant_id
  WHERE k.prefix = wanted_prefix
$$;
REVOKE ALL ON FUNCTION auth_lookup(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION auth_lookup(text) TO kindmem_app, kindmem_owner;
ALTER FUNCTION auth_lookup(text) OWNER TO kindmem_search;
