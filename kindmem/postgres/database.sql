-- Rights inside one application database. Run as superuser in that database, any number of times.
-- Functions: EXECUTE is not for everybody. This default is the role's, so it can't be per schema.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO kindmem_owner;
-- CREATE is what PostgreSQL asks of a role that is given a function; kindmem_search can't log in.
GRANT USAGE, CREATE ON SCHEMA public TO kindmem_search;
GRANT USAGE ON SCHEMA public TO kindmem_app, kindmem_backup;

ALTER DEFAULT PRIVILEGES FOR ROLE kindmem_owner
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO kindmem_app;
ALTER DEFAULT PRIVILEGES FOR ROLE kindmem_owner
  GRANT USAGE ON SEQUENCES TO kindmem_app;
ALTER DEFAULT PRIVILEGES FOR ROLE kindmem_owner
  GRANT SELECT ON TABLES TO kindmem_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE kindmem_owner
  GRANT SELECT ON SEQUENCES TO kindmem_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE kindmem_owner, kindmem_search
  REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE kindmem_owner, kindmem_search
  GRANT EXECUTE ON FUNCTIONS TO kindmem_app;
