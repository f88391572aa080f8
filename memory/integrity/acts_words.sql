-- Holds the server's words in a run, that payloads were erased, against the acts of governance that erased them: the first place at
-- which a word is named by no act, or a payload was erased at another time than its word says; no row where all is well.
-- Parameters: tenant (uuid), run, first, last (bigint, null = to the end), near (seconds).
-- An act is `{"attested":{<entry>:<word>, …},"entries",…,"reasonCode","type":"log.payloads-erased"}`; before it named words, it
-- named entries only. to_json(text) writes a string as RFC 8785 does, and within such a text no other string can hold `,"` or `{"`
-- followed by a whole id and its quotes.
WITH word AS (
  SELECT w.sequence, w.id, w.recorded_at, w.caused_by, w.payload_text,
         '{"logEntryId":' || to_json(w.caused_by) || ',' AS beginning
  FROM log_entry w
  WHERE w.tenant_id = %(tenant)s::uuid AND w.run_id = %(run)s::text AND w.sequence >= %(first)s::bigint
    AND w.kind = 'event-emitted' AND right(w.payload_text, 25) = ',"type":"payload.erased"}'
),
told AS (
  SELECT w.*, to_json(w.caused_by) || ':' || to_json(w.id) AS pair,
         substr(w.payload_text, length(w.beginning) + 1) AS reason
  FROM word w
),
judged AS (
  SELECT t.*,
         coalesce(
           starts_with(t.payload_text, t.beginning)
           AND t.reason ~ '^"reasonCode":"[a-z0-9][a-z0-9-]{0,63}","type":"payload\.erased"\}$'
           AND coalesce(
             -- The act is of the same transaction, so it is the first one from that moment on; else it is looked for among all.
             (SELECT true FROM log_entry a
              WHERE a.tenant_id = %(tenant)s::uuid AND a.run_id = 'kindmem.governance' AND a.kind = 'event-emitted'
                AND right(a.payload_text, 30) = ',"type":"log.payloads-erased"}'
                AND a.recorded_at >= t.recorded_at - INTERVAL '1 minute'
                AND strpos(a.payload_text, ',' || split_part(t.reason, ',', 1) || ',') > 0
                AND (strpos(a.payload_text, '{' || t.pair) > 0 OR strpos(a.payload_text, ',' || t.pair) > 0)
              ORDER BY a.recorded_at LIMIT 1),
             (SELECT true FROM log_entry a
              WHERE a.tenant_id = %(tenant)s::uuid AND a.run_id = 'kindmem.governance' AND a.kind = 'event-emitted'
                AND right(a.payload_text, 30) = ',"type":"log.payloads-erased"}'
                AND strpos(a.payload_text, ',' || split_part(t.reason, ',', 1) || ',') > 0
                AND (strpos(a.payload_text, '{' || t.pair) > 0 OR strpos(a.payload_text, ',' || t.pair) > 0
                     OR starts_with(a.payload_text, '{"entries":')
                        AND (strpos(a.payload_text, '[' || to_json(t.caused_by)) > 0
                             OR strpos(a.payload_text, ',' || to_json(t.caused_by)) > 0))
              LIMIT 1)), false) AS is_backed
  FROM told t
),
found AS (
  SELECT j.sequence AS word_sequence,
         -- Where such a word is all that speaks for an erased payload, that payload is what is missing.
         least(j.sequence, (
           SELECT e.sequence FROM log_entry e
           WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.id = j.caused_by
             AND e.payload_erased_at IS NOT NULL AND e.sequence >= %(first)s::bigint
             AND NOT EXISTS (SELECT FROM judged g WHERE g.is_backed AND g.caused_by = j.caused_by)
           LIMIT 1)) AS sequence,
         'an act of governance that names it' AS expected, 'the word of an erasure that no act names' AS found
  FROM judged j WHERE NOT j.is_backed
  UNION ALL
  SELECT j.sequence, CASE WHEN e.sequence < %(first)s::bigint THEN j.sequence ELSE e.sequence END, 'erased at ' || j.recorded_at, 'erased at ' || e.payload_erased_at
  FROM judged j JOIN log_entry e ON e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.id = j.caused_by
  WHERE j.is_backed AND e.payload_erased_at IS NOT NULL
    AND NOT EXISTS (
      SELECT FROM judged g WHERE g.caused_by = j.caused_by AND g.is_backed
        AND e.payload_erased_at >= g.recorded_at - make_interval(secs => %(near)s::int)
        AND e.payload_erased_at <= g.recorded_at + make_interval(secs => %(near)s::int))
)
SELECT sequence, word_sequence, expected, found FROM found
WHERE sequence >= %(first)s::bigint AND (%(last)s::bigint IS NULL OR sequence <= %(last)s::bigint)
ORDER BY sequence, word_sequence LIMIT 1
