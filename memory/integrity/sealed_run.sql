-- Holds what is stored of a run against some of its seals, in plain SQL: one row for each that is not as it was sealed.
-- Parameters: tenant (uuid), run, indices (bigint[]: leaf indices of the seals), first, last (bigint, null = to the end).
WITH RECURSIVE seal AS (
  SELECT l.leaf_index, l.record_hashes,
         (l.leaf_text::jsonb ->> 'fromSequence')::bigint AS from_sequence,
         (l.leaf_text::jsonb ->> 'toSequence')::bigint AS to_sequence,
         decode(substr(l.leaf_text::jsonb ->> 'headHash', 8), 'hex') AS head_hash,
         decode(substr(l.leaf_text::jsonb ->> 'recordsRoot', 8), 'hex') AS records_root
  FROM seal_leaf l
  WHERE l.tenant_id = %(tenant)s::uuid AND l.leaf_index = ANY(%(indices)s::bigint[])
),
-- The tree over a seal's leaf hashes, level by level: neighbours are hashed together, one without a neighbour moves up.
level AS (
  SELECT s.leaf_index,
         ARRAY(SELECT substr(s.record_hashes, n * 32 + 1, 32)
               FROM generate_series(0, octet_length(s.record_hashes) / 32 - 1) n ORDER BY n) AS hashes
  FROM seal s
  UNION ALL
  SELECT l.leaf_index,
         ARRAY(SELECT CASE WHEN l.hashes[2 * n + 2] IS NULL THEN l.hashes[2 * n + 1]
                           ELSE sha256('\x01'::bytea || l.hashes[2 * n + 1] || l.hashes[2 * n + 2]) END
               FROM generate_series(0, (cardinality(l.hashes) - 1) / 2) n ORDER BY n)
  FROM level l WHERE cardinality(l.hashes) > 1
),
root AS (
  SELECT leaf_index, hashes[1] AS hash FROM level WHERE cardinality(hashes) = 1
),
place AS (
  SELECT s.leaf_index, s.to_sequence, s.head_hash, n AS sequence,
         substr(s.record_hashes, ((n - s.from_sequence) * 32 + 1)::int, 32) AS sealed_hash
  FROM seal s CROSS JOIN LATERAL generate_series(
    greatest(s.from_sequence, %(first)s::bigint), least(s.to_sequence, %(last)s::bigint)) n
),
entry AS (
  SELECT DISTINCT ON (e.sequence) e.sequence, e.entry_hash,
         sha256('\x00'::bytea || convert_to(
           '{' || coalesce('"causedByLogId":' || to_json(e.caused_by) || ',', '') || '"entryHash":"sha256:'
           || encode(e.entry_hash, 'hex') || '","hashVersion":' || e.hash_version || '}', 'UTF8')) AS hash
  FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
    AND e.sequence BETWEEN (SELECT min(p.sequence) FROM place p) AND (SELECT max(p.sequence) FROM place p)
  ORDER BY e.sequence
),
found AS (
  SELECT s.from_sequence AS sequence, 0 AS rank, s.records_root AS expected, r.hash AS found
  FROM seal s LEFT JOIN root r USING (leaf_index)
  WHERE r.hash IS DISTINCT FROM s.records_root
    OR octet_length(s.record_hashes) / 32 <> s.to_sequence - s.from_sequence + 1
  UNION ALL
  SELECT p.sequence, 1, p.sealed_hash, e.hash
  FROM place p LEFT JOIN entry e USING (sequence)
  WHERE e.hash IS DISTINCT FROM p.sealed_hash
  UNION ALL
  SELECT p.sequence, 2, p.head_hash, e.entry_hash
  FROM place p JOIN entry e USING (sequence)
  WHERE p.sequence = p.to_sequence AND e.entry_hash <> p.head_hash
)
SELECT sequence, expected, found FROM found ORDER BY sequence, rank LIMIT 1
