-- Follows chain_clean.sql: what the seals over a clean range are made of; no row otherwise.
SELECT entries, substr(prev_hashes, 1, 32) AS first_prev_hash, entry_hashes, has_word, version, caused, causes
FROM clean
WHERE is_clean AND entries > 0
