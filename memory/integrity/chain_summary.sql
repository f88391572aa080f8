-- Follows chain_rows.sql: one row about the whole run or range, in one snapshot with its head row.
, totals AS (
  SELECT count(*) AS entries,
         count(*) FILTER (WHERE is_erased) AS erased,
         count(*) FILTER (WHERE is_erased AND hash_version = 1) AS linkage_only,
         min(bad_sequence) FILTER (WHERE verdict <> 'unattested') AS bad_sequence,
         min(bad_sequence) FILTER (WHERE verdict = 'unattested') AS unattested_sequence
  FROM judged
),
ending AS (
  SELECT coalesce(newest.sequence, -1) AS sequence,
         coalesce(newest.entry_hash, decode(repeat('00', 32), 'hex')) AS entry_hash,
         newest.prev_hash, coalesce(head.prev_hash, ''::bytea) AS head_prev_hash,
         newest.sequence IS NOT NULL OR %(first)s::bigint = 0 AS is_anchored,
         head.next_sequence, coalesce(head.head_hash, ''::bytea) AS head_hash,
         coalesce(head.entry_count, 0) AS entry_count
  FROM (SELECT) AS always
  LEFT JOIN LATERAL (
    SELECT e.sequence, e.entry_hash, e.prev_hash FROM log_entry e
    WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
      AND e.sequence >= %(first)s::bigint - 1
      AND (%(last)s::bigint IS NULL OR e.sequence <= %(last)s::bigint)
    ORDER BY e.sequence DESC LIMIT 1
  ) newest ON true
  LEFT JOIN run_head head
    ON head.tenant_id = %(tenant)s::uuid AND head.run_id = %(run)s::text
),
compared AS (
  SELECT e.*,
         CASE
           WHEN NOT e.is_anchored THEN
             CASE WHEN e.next_sequence >= %(first)s::bigint THEN 'anchor missing' END
           WHEN e.next_sequence IS NULL THEN
             CASE WHEN e.sequence >= 0 THEN 'head missing' END
           WHEN e.sequence + 1 > e.next_sequence THEN 'beyond head'
           WHEN e.sequence + 1 = e.next_sequence THEN
             CASE WHEN e.head_hash IS DISTINCT FROM e.entry_hash THEN 'other head'
                  WHEN e.head_prev_hash IS DISTINCT FROM e.prev_hash THEN 'other link'
                  WHEN e.entry_count <> e.next_sequence THEN 'other count' END
           WHEN %(last)s::bigint IS NULL OR e.sequence < %(last)s::bigint THEN 'cut'
         END AS verdict
  FROM ending e
)
SELECT t.entries, t.erased, t.linkage_only, t.bad_sequence, t.unattested_sequence,
       c.sequence, c.entry_hash, c.next_sequence,
       CASE c.verdict
         WHEN 'anchor missing' THEN %(first)s::bigint - 1
         WHEN 'head missing' THEN c.sequence
         WHEN 'beyond head' THEN c.next_sequence
         WHEN 'other head' THEN c.sequence
         WHEN 'other link' THEN c.sequence
         WHEN 'other count' THEN c.sequence + 1
         WHEN 'cut' THEN c.sequence + 1
       END AS end_sequence,
       CASE WHEN c.verdict IN ('anchor missing', 'other count', 'cut') THEN 'gap'
            WHEN c.verdict IS NOT NULL THEN 'link' END AS end_class,
       CASE c.verdict
         WHEN 'anchor missing' THEN (%(first)s::bigint - 1)::text
         WHEN 'head missing' THEN 'a head row'
         WHEN 'beyond head' THEN 'no entry'
         WHEN 'other head' THEN 'sha256:' || encode(c.head_hash, 'hex')
         WHEN 'other link' THEN 'sha256:' || encode(c.head_prev_hash, 'hex')
         WHEN 'other count' THEN c.entry_count::text
         WHEN 'cut' THEN (c.sequence + 1)::text
       END AS end_expected,
       CASE c.verdict
         WHEN 'anchor missing' THEN 'no entry'
         WHEN 'head missing' THEN 'no head row'
         WHEN 'beyond head' THEN 'an entry'
         WHEN 'other head' THEN 'sha256:' || encode(c.entry_hash, 'hex')
         WHEN 'other link' THEN 'sha256:' || encode(c.prev_hash, 'hex')
         WHEN 'other count' THEN (c.sequence + 1)::text
         WHEN 'cut' THEN 'no entry'
       END AS end_found
FROM totals t CROSS JOIN compared c
