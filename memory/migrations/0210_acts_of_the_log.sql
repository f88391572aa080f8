-- What a verifier holds against each other: the server's words in runs that payloads were erased, and the acts of governance that
-- erased them and that closed runs.
CREATE INDEX log_entry_says_erased ON log_entry (tenant_id, run_id, sequence)
  WHERE kind = 'event-emitted' AND right(payload_text, 25) = ',"type":"payload.erased"}';
CREATE INDEX log_entry_erases ON log_entry (tenant_id, recorded_at)
  WHERE run_id = 'kindmem.governance' AND right(payload_text, 30) = ',"type":"log.payloads-erased"}';
CREATE INDEX log_entry_closes_run ON log_entry (tenant_id, (payload_text COLLATE "C"))
  WHERE run_id = 'kindmem.governance' AND right(payload_text, 21) = ',"type":"run.closed"}';
