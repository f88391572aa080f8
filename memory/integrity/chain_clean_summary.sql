-- Follows chain_clean.sql: whether a span and the head row, in one snapshot, are as they should be, and where it ends.
SELECT c.is_clean AND c.next_sequence IS NOT NULL AND CASE
         WHEN c.newest + 1 = c.next_sequence THEN
           c.head_hash = c.newest_hash AND c.entry_count = c.next_sequence
           AND (c.newest_prev_hash IS NULL OR c.head_prev_hash = c.newest_prev_hash)
         ELSE c.newest + 1 < c.next_sequence AND c.newest = %(last)s::bigint
       END IS TRUE AS is_clean,
       c.entries, c.newest, c.newest_hash, c.next_sequence, c.has_more
FROM (
  SELECT s.is_clean, s.entries, coalesce(s.newest, %(first)s::bigint - 1) AS newest,
         coalesce(substr(s.entry_hashes, octet_length(s.entry_hashes) - 31), s.before_hash) AS newest_hash,
         coalesce(substr(s.prev_hashes, octet_length(s.prev_hashes) - 31), s.before_prev_hash) AS newest_prev_hash,
         h.next_sequence, h.head_hash, h.entry_count, h.prev_hash AS head_prev_hash,
         EXISTS (
           SELECT FROM log_entry e
           WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.sequence > %(last)s::bigint
         ) AS has_more
  FROM clean s
  LEFT JOIN run_head h ON h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text
) c
