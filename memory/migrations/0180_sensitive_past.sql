-- What the worker looks up: sensitive values that something took the place of, and that are past their last day.
CREATE INDEX memory_record_sensitive_past ON memory_record (tenant_id, valid_until)
  WHERE status = 'superseded' AND sensitivity = 'sensitive';
