-- What a live fact says about whom, as a digest: equal for facts that say the same (memory/search/wording.py), so that a search
-- answers with each statement once. Null where a fact has no words of its own, is deleted, or was not looked at again since.
ALTER TABLE fact ADD COLUMN wording bytea CONSTRAINT fact_wording_has_length CHECK (octet_length(wording) = 16);
CREATE INDEX fact_by_wording ON fact (tenant_id, wording) WHERE wording IS NOT NULL AND deleted_at IS NULL;
