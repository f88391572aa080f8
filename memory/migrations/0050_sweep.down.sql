DROP INDEX fact_by_deletion;
DROP INDEX fact_by_expiry;
CREATE INDEX fact_by_expiry ON fact (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
DROP TABLE destroyed_fact;
DROP TABLE sweep_clock;
DROP TABLE sweep;
