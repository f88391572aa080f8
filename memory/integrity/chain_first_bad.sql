-- Follows chain_rows.sql: class, expected and found of the entry at bad_sequence (bigint).
-- A wrong entry hash is a moved entry when it is right with other values in its place: the hash
-- before it, a sequence up to `window` away, or one of the tenant's first `runs` other runs.
, bad AS (
  SELECT * FROM judged
  WHERE verdict <> 'unattested' AND bad_sequence = %(bad_sequence)s::bigint
  LIMIT 1
),
explained AS (
  SELECT b.*,
         CASE
           WHEN b.verdict <> 'hash' THEN b.verdict
           WHEN b.entry_hash = sha256(convert_to(
             b.text_before || encode(b.due_hash, 'hex') || b.text_after || b.sequence || b.text_end,
             'UTF8')) THEN 'link'
           WHEN b.moved_from IS NOT NULL THEN 'reordered'
           WHEN EXISTS (
             SELECT FROM (
               SELECT r.run_id FROM run_head r
               WHERE r.tenant_id = %(tenant)s::uuid LIMIT %(runs)s::bigint
             ) other
             WHERE b.entry_hash = sha256(convert_to(
               b.text_before || encode(b.prev_hash, 'hex') || '","runId":' || to_json(other.run_id)
               || ',"scope":' || b.scope_text || ',"sequence":' || b.sequence || b.text_end,
               'UTF8'))
           ) THEN 'other run'
           ELSE 'hash'
         END AS cause
  FROM (
    SELECT bad.*,
           CASE WHEN bad.verdict = 'hash' THEN (
             SELECT place FROM generate_series(
               greatest(0, bad.sequence - %(window)s::bigint), bad.sequence + %(window)s::bigint
             ) place
             WHERE bad.entry_hash = sha256(convert_to(
               bad.text_before || encode(bad.prev_hash, 'hex') || bad.text_after || place
               || bad.text_end, 'UTF8'))
             LIMIT 1
           ) END AS moved_from
    FROM bad
  ) b
)
SELECT CASE x.cause WHEN 'hash' THEN 'content' WHEN 'lacks' THEN 'content' WHEN 'other run' THEN 'scope' ELSE x.cause END
         AS class,
       CASE x.cause
         WHEN 'gap' THEN x.bad_sequence::text
         WHEN 'duplicate' THEN (x.sequence + 1)::text
         WHEN 'lacks' THEN 'a whole entry'
         WHEN 'content' THEN
           CASE WHEN x.hash_version NOT IN (1, 2) THEN 'hash version 1 or 2'
                WHEN NOT x.is_erased
                  THEN coalesce('sha256:' || encode(x.content_hash, 'hex'), 'no payload')
                WHEN x.payload_text IS NOT NULL OR x.payload_salt IS NOT NULL THEN 'no payload'
                ELSE 'a content hash' END
         WHEN 'hash' THEN 'sha256:' || encode(x.entry_hash, 'hex')
         WHEN 'reordered' THEN x.sequence::text
         WHEN 'other run' THEN %(run)s::text
         WHEN 'scope' THEN '"tenantId":"' || %(tenant_slug)s::text || '"'
         ELSE 'sha256:' || encode(x.due_hash, 'hex')
       END AS expected,
       CASE x.cause
         WHEN 'gap' THEN x.sequence::text
         WHEN 'duplicate' THEN x.sequence::text
         WHEN 'lacks' THEN 'no ' || x.lacks
         WHEN 'content' THEN
           CASE WHEN x.hash_version NOT IN (1, 2) THEN x.hash_version::text
                WHEN x.is_erased AND (x.payload_text IS NOT NULL OR x.payload_salt IS NOT NULL)
                  THEN 'a payload'
                WHEN x.payload_text IS NULL THEN 'no payload'
                ELSE coalesce('sha256:' || encode(x.payload_hash, 'hex'),
                              'a payload without its salt') END
         WHEN 'hash' THEN 'sha256:' || encode(x.computed_hash, 'hex')
         WHEN 'reordered' THEN x.moved_from::text
         WHEN 'other run' THEN 'another run'
         WHEN 'scope' THEN 'the scope of another tenant'
         ELSE 'sha256:' || encode(x.prev_hash, 'hex')
       END AS found
FROM explained x
