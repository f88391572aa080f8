-- Judges a span of one run as a whole, quickly: clean only when chain_rows.sql would find nothing in it. What is not clean here is
-- looked at again by that statement, entry by entry. Parameters: as there, without attested and sealed_to.
-- It hashes the same texts, their strings written plainly (`named`): right when none of them holds what RFC 8785 escapes, which is
-- asked once of all of them together, by their quotes. The links are compared as one text, with the hashes moved on by one entry.
-- textsend gives a text's bytes in the client's encoding, without the check and the copy that convert_to makes.
WITH part AS (
  SELECT '","runId":' || to_json(%(run)s::text) || ',"scope":' AS text
),
-- The scope that most entries of the span have: its first one's, when it is of the tenant.
usual AS MATERIALIZED (
  SELECT f.scope_text, p.text || f.scope_text || ',"sequence":' AS part
  FROM part p CROSS JOIN (
    SELECT l.scope_text FROM log_entry l
    WHERE l.tenant_id = %(tenant)s::uuid AND l.run_id = %(run)s::text AND l.sequence >= %(first)s::bigint
    ORDER BY l.sequence LIMIT 1) f
  WHERE strpos(f.scope_text, '"tenantId":"' || %(tenant_slug)s::text || '"') > 0
),
judged AS (
  SELECT e.sequence, e.prev_hash, e.entry_hash, e.hash_version, e.caused_by, e.content_hash, e.actor, e.named,
         e.kind = 'event-emitted' AND right(e.payload_text, 25) = ',"type":"payload.erased"}' AS is_word,
         e.payload_erased_at IS NULL AND octet_length(e.prev_hash) = 32
         AND CASE
           WHEN e.payload_text IS NULL THEN e.content_hash IS NULL
           WHEN e.hash_version = 1 THEN e.content_hash = sha256(textsend(e.payload_text))
           ELSE e.content_hash = sha256(textsend(
             '{"payload":' || e.payload_text || (',"payloadSalt":"' || e.payload_salt || '"}')))
         END
         AND e.entry_hash = sha256(textsend(
           CASE WHEN e.hash_version = 1 AND e.payload_text IS NOT NULL
             THEN e.named || '","payload":' || e.payload_text ELSE e.named || '"' END
           || (',"prevHash":"sha256:' || encode(e.prev_hash, 'hex')
               || CASE WHEN e.scope_text = (SELECT u.scope_text FROM usual u) THEN (SELECT u.part FROM usual u)
                  ELSE CASE WHEN strpos(e.scope_text, '"tenantId":"' || %(tenant_slug)s::text || '"') > 0
                    THEN (SELECT p.text FROM part p) || e.scope_text || ',"sequence":' END END
               || e.sequence || ',"timestamp":'
               -- To the microsecond, so that there are six digits, of which the last three are cut where they are 001.
               || CASE WHEN e.recorded_at >= '0001-01-01 00:00:00+00' AND e.recorded_at < '10000-01-01 00:00:00+00'
                  THEN replace(to_json((e.recorded_at + INTERVAL '1 microsecond') AT TIME ZONE INTERVAL '0')::text,
                               '001"', 'Z"}') END))) AS is_right
  FROM (
    SELECT l.*,
           CASE l.hash_version
             WHEN 1 THEN
               coalesce('{"actor":"' || l.actor || '","id":"', '{"id":"') || l.id || '","kind":"' || l.kind
             WHEN 2 THEN
               coalesce('{"actor":"' || l.actor || '",', '{')
               || coalesce('"causedByLogId":"' || l.caused_by || '",', '')
               || coalesce('"contentHash":"sha256:' || encode(l.content_hash, 'hex') || '",', '')
               || '"hashVersion":2,"id":"' || l.id || '","kind":"' || l.kind
           END AS named
    FROM log_entry l
    WHERE l.tenant_id = %(tenant)s::uuid AND l.run_id = %(run)s::text
      AND l.sequence >= %(first)s::bigint AND (%(last)s::bigint IS NULL OR l.sequence <= %(last)s::bigint)
    ORDER BY l.sequence OFFSET 0 -- read in order; named is made once, not once for each use
  ) e
),
span AS (
  SELECT count(*) AS entries, count(DISTINCT sequence) AS places, min(sequence) AS oldest, max(sequence) AS newest,
         count(*) FILTER (WHERE is_right) AS right_entries,
         string_agg(named, NULL) AS named,
         -- The quotes that those texts have by themselves.
         CASE WHEN min(hash_version) < max(hash_version) THEN NULL
              WHEN min(hash_version) = 1 THEN 7 * count(*) + 4 * count(actor)
              ELSE 9 * count(*) + 4 * (count(actor) + count(caused_by) + count(content_hash)) END AS quotes,
         string_agg(prev_hash, NULL ORDER BY sequence) AS prev_hashes,
         string_agg(entry_hash, NULL ORDER BY sequence) AS entry_hashes,
         min(hash_version) AS version,
         array_agg(sequence ORDER BY sequence) FILTER (WHERE caused_by IS NOT NULL) AS caused,
         array_agg(caused_by ORDER BY sequence) FILTER (WHERE caused_by IS NOT NULL) AS causes,
         coalesce(bool_or(is_word), false) AS has_word
  FROM judged
),
before AS (
  SELECT string_agg(e.entry_hash, ''::bytea) AS entry_hash, string_agg(e.prev_hash, ''::bytea) AS prev_hash
  FROM log_entry e
  WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.sequence = %(first)s::bigint - 1
    AND %(first)s::bigint > 0
),
clean AS (
  SELECT s.*, b.hash AS before_hash, b.prev_hash AS before_prev_hash,
         coalesce(
           octet_length(b.hash) = 32
           AND CASE WHEN s.entries = 0 THEN true ELSE
             s.right_entries = s.entries AND s.places = s.entries
             AND s.oldest = %(first)s::bigint AND s.newest = %(first)s::bigint + s.entries - 1
             AND s.prev_hashes = b.hash || substr(s.entry_hashes, 1, octet_length(s.entry_hashes) - 32)
             AND octet_length(to_json(s.named)::text) = octet_length(s.named) + 2 + s.quotes
             AND pg_client_encoding() = 'UTF8'
           END, false) AS is_clean
  FROM span s CROSS JOIN (
    SELECT CASE WHEN %(first)s::bigint = 0 THEN decode(repeat('00', 32), 'hex') ELSE entry_hash END AS hash, prev_hash
    FROM before
  ) b
)
