-- What came of a sweep, whole: what it left to open erasures, and of which types it took (or would take) how many.
ALTER TABLE sweep
  ADD COLUMN erasing_count bigint NOT NULL DEFAULT 0,
  ADD COLUMN types_text text NOT NULL DEFAULT '{}';
