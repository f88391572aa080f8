-- Which act an undo took back, found from its own receipt.
CREATE INDEX receipt_by_its_undo ON receipt (tenant_id, undone_by) WHERE undone_by IS NOT NULL;
