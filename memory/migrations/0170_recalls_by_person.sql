-- Only retrievals, so that appending anything else costs nothing more.
CREATE INDEX log_entry_recalls_by_person ON log_entry (tenant_id, user_id, recorded_at DESC)
  WHERE kind = 'retrieval' AND user_id IS NOT NULL;
