ALTER TABLE sweep DROP COLUMN types_text, DROP COLUMN erasing_count;
