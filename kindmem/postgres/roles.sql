-- Roles of the whole cluster, kept as docs/architecture.md says. Run as superuser, any number of times.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['kindmem_owner', 'kindmem_app', 'kindmem_search', 'kindmem_backup'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I', name);
    END IF;
  END LOOP;
END $$;

ALTER ROLE kindmem_owner LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION;
ALTER ROLE kindmem_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION;
ALTER ROLE kindmem_search NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION;
ALTER ROLE kindmem_backup LOGIN NOSUPERUSER BYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION;

-- The owner may become the search role (to give it a function), and has none of its rights otherwise.
DO $$
BEGIN
  IF current_setting('server_version_num')::int >= 160000 THEN
    GRANT kindmem_search TO kindmem_owner WITH INHERIT FALSE, SET TRUE;
  ELSE
    ALTER ROLE kindmem_owner NOINHERIT;
    GRANT kindmem_search TO kindmem_owner;
  END IF;
END $$;

-- A web request that takes longer is broken; work that may take longer says so in its transaction.
ALTER ROLE kindmem_app SET statement_timeout = '5s';
ALTER ROLE kindmem_app SET lock_timeout = '2s';
ALTER ROLE kindmem_app SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE kindmem_app SET synchronous_commit = 'on';
-- Every query of the application starts from a tenant's index. A plan made while a table is still empty would scan it whole,
-- and a prepared statement keeps that plan while the table grows.
ALTER ROLE kindmem_app SET enable_seqscan = 'off';
DO $$
BEGIN
  IF current_setting('server_version_num')::int >= 170000 THEN
    ALTER ROLE kindmem_app SET transaction_timeout = '30s';
  END IF;
END $$;
-- A migration that can't have its lock must not make every request queue behind it.
ALTER ROLE kindmem_owner SET lock_timeout = '10s';
-- A dump reads for as long as it takes, and must never write.
ALTER ROLE kindmem_backup SET default_transaction_read_only = 'on';
