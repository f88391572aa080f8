-- What waits for a person's decision: why a fact does, what a proposed record would end, and changes of facts among the acts.
ALTER TABLE fact ADD COLUMN review_reason text
  CONSTRAINT fact_review_reason_is_known CHECK (review_reason IN ('instruction', 'wide'));
-- In the order in which the queue is worked off.
CREATE INDEX fact_in_review ON fact (tenant_id, created_at, id) WHERE review IS NOT NULL;

-- The records that a proposal said it supersedes; null for what doesn't wait, and for what names none.
ALTER TABLE memory_record ADD COLUMN would_supersede text[];
-- Complaints that nobody decided yet: their main record is still set aside, or still disputed since then.
CREATE INDEX memory_record_disputed ON memory_record (tenant_id, disputed_at) WHERE disputed_at IS NOT NULL AND status = 'active';

ALTER TABLE pending_act ADD COLUMN fact_id text;
CREATE INDEX pending_act_by_fact ON pending_act (tenant_id, fact_id) WHERE fact_id IS NOT NULL;
