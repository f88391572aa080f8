ALTER TABLE page_form DROP COLUMN said;
