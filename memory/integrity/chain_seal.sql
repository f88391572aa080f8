-- Follows chain_rows.sql: one row about a range that is to be sealed. It is sealed only when `bad_sequence` is null, the range
-- is whole and its first entry names the head that was sealed before. The leaf of an entry: memory.hashing.record_leaf_text.
SELECT count(*) AS entries,
       min(bad_sequence) FILTER (WHERE verdict IS NOT NULL) AS bad_sequence,
       (array_agg(prev_hash ORDER BY sequence))[1] AS first_prev_hash,
       string_agg(sha256('\x00'::bytea || convert_to(
         '{' || coalesce('"causedByLogId":' || to_json(caused_by) || ',', '') || '"entryHash":"sha256:'
         || encode(entry_hash, 'hex') || '","hashVersion":' || hash_version || '}', 'UTF8')), ''::bytea ORDER BY sequence)
         AS record_hashes,
       string_agg(entry_hash, ''::bytea ORDER BY sequence) AS entry_hashes,
       coalesce(bool_or(kind = 'event-emitted' AND right(payload_text, 25) = ',"type":"payload.erased"}'), false) AS has_word
FROM judged
