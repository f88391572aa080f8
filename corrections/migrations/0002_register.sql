-- The register of what ended is read newest first, over a whole tenant.
CREATE INDEX record_act_ended_newest_first ON record_act (tenant_id, acted_at DESC, act_id, record_id) WHERE to_status <> 'active';
CREATE INDEX fact_revision_ended_newest_first ON fact_revision (tenant_id, invalidated_at DESC, fact_id, version)
  WHERE invalidated_at IS NOT NULL;
CREATE INDEX destroyed_fact_newest_first ON destroyed_fact (tenant_id, destroyed_at DESC, fact_id);
