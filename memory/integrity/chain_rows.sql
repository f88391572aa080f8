-- Judges each stored entry of one run by recomputing its hashes from the stored texts.
-- Parameters: tenant (uuid), tenant_slug, run, first, last (bigint, null = to the end),
-- sealed_to (bigint), attested (text[]). to_json(text) writes a string as RFC 8785 does.
WITH stored AS (
  SELECT e.sequence, e.id, e.kind, e.caused_by, e.hash_version, e.prev_hash, e.entry_hash, e.content_hash, e.scope_text,
         e.payload_text, e.payload_salt, e.payload_erased_at IS NOT NULL AS is_erased,
         lag(e.sequence) OVER place AS before_sequence,
         lead(e.sequence) OVER place AS after_sequence,
         lag(e.entry_hash) OVER place AS before_hash,
         lag(e.prev_hash) OVER place AS before_prev_hash,
         CASE e.hash_version
           WHEN 1 THEN
             '{' || coalesce('"actor":' || to_json(e.actor) || ',', '')
             || '"id":' || to_json(e.id) || ',"kind":' || to_json(e.kind)
             || coalesce(',"payload":' || e.payload_text, '')
           WHEN 2 THEN
             '{' || coalesce('"actor":' || to_json(e.actor) || ',', '')
             || coalesce('"causedByLogId":' || to_json(e.caused_by) || ',', '')
             || coalesce('"contentHash":"sha256:' || encode(e.content_hash, 'hex') || '",', '')
             || '"hashVersion":2,"id":' || to_json(e.id) || ',"kind":' || to_json(e.kind)
         END || ',"prevHash":"sha256:' AS text_before,
         '","runId":' || to_json(e.run_id) || ',"scope":' || e.scope_text || ',"sequence":'
           AS text_after,
         ',"timestamp":"'
           -- A year of four digits: of another one to_char fails or writes what a year of four digits would be.
           || CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00' AND e.recorded_at < '10000-01-01 00:00:00+00'
                THEN to_char(e.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END || '"}'
           AS text_end
  FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text
    AND e.sequence >= %(first)s::bigint - 1
    AND (%(last)s::bigint IS NULL OR e.sequence <= %(last)s::bigint)
  WINDOW place AS (ORDER BY e.sequence)
),
computed AS (
  SELECT s.*,
         coalesce(
           s.before_sequence,
           CASE WHEN %(first)s::bigint = 0 THEN -1 ELSE %(first)s::bigint - 2 END
         ) + 1 AS due_sequence,
         coalesce(s.before_hash, decode(repeat('00', 32), 'hex')) AS due_hash,
         CASE
           WHEN s.payload_text IS NULL THEN NULL
           WHEN s.hash_version = 1 THEN sha256(convert_to(s.payload_text, 'UTF8'))
           ELSE sha256(convert_to(
             '{"payload":' || s.payload_text || ',"payloadSalt":"' || s.payload_salt || '"}',
             'UTF8'))
         END AS payload_hash,
         -- What nobody but the owner of the table can take away, and without which there is nothing to hash.
         CASE WHEN s.id IS NULL THEN 'id' WHEN s.kind IS NULL THEN 'kind' WHEN s.scope_text IS NULL THEN 'scope'
              WHEN s.text_end IS NULL THEN 'timestamp' WHEN s.prev_hash IS NULL THEN 'prevHash'
              WHEN s.entry_hash IS NULL THEN 'entryHash' WHEN s.hash_version IS NULL THEN 'hashVersion' END AS lacks,
         sha256(convert_to(
           s.text_before || encode(s.prev_hash, 'hex') || s.text_after || s.sequence || s.text_end,
           'UTF8')) AS computed_hash
  FROM stored s
  WHERE s.sequence >= %(first)s::bigint
  OFFSET 0 -- computed once, not once for each use below
),
-- Which entries an attested erasure names: exactly the text that memory.integrity.rows describes.
word AS MATERIALIZED (
  SELECT w.sequence, w.payload_text
  FROM log_entry w
  WHERE w.tenant_id = %(tenant)s::uuid AND w.run_id = %(run)s::text
    AND w.sequence > greatest(%(sealed_to)s::bigint, %(first)s::bigint)
    AND w.kind = 'event-emitted'
    AND right(w.payload_text, 25) = ',"type":"payload.erased"}'
),
judged AS (
  SELECT c.*,
         CASE WHEN c.sequence > c.due_sequence THEN c.due_sequence ELSE c.sequence END
           AS bad_sequence,
         CASE
           WHEN c.sequence > c.due_sequence THEN 'gap'
           WHEN c.sequence < c.due_sequence OR c.sequence = c.after_sequence THEN 'duplicate'
           WHEN c.lacks IS NOT NULL THEN 'lacks'
           WHEN c.hash_version NOT IN (1, 2) THEN 'content'
           WHEN c.is_erased
             AND (c.payload_text IS NOT NULL OR c.payload_salt IS NOT NULL
                  OR c.content_hash IS NULL) THEN 'content'
           WHEN NOT c.is_erased
             AND (c.payload_hash IS DISTINCT FROM c.content_hash
                  OR (c.payload_text IS NOT NULL AND c.payload_hash IS NULL)) THEN 'content'
           WHEN c.computed_hash IS DISTINCT FROM c.entry_hash AND NOT (c.is_erased AND c.hash_version = 1)
             THEN 'hash' -- the statement that explains one entry says which class
           WHEN c.prev_hash IS DISTINCT FROM c.due_hash THEN
             CASE WHEN c.prev_hash = c.before_prev_hash THEN 'fork' ELSE 'link' END
           WHEN strpos(c.scope_text, '"tenantId":"' || %(tenant_slug)s::text || '"') = 0
             THEN 'scope'
           WHEN c.is_erased AND c.id <> ALL (%(attested)s::text[])
             AND NOT EXISTS (
               SELECT FROM word
               WHERE word.sequence > c.sequence
                 AND starts_with(word.payload_text, '{"logEntryId":' || to_json(c.id) || ','))
             THEN 'unattested'
         END AS verdict
  FROM computed c
)
