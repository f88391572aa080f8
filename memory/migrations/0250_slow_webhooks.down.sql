UPDATE procrastinate_jobs SET queue_name = 'far' WHERE task_name = 'refresh-stale' AND status = 'todo';
DELETE FROM procrastinate_jobs WHERE task_name = 'deliver-slowly' AND status = 'todo';

SET LOCAL ROLE kindmem_search;
CREATE OR REPLACE FUNCTION work_due(works text[]) RETURNS TABLE (tenant_id uuid, work text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
  SELECT t.id, w.work FROM tenant t CROSS JOIN unnest(works) AS w (work)
  WHERE t.closed_at IS NULL AND CASE w.work
    WHEN 'seal' THEN
      EXISTS (SELECT FROM run_head h
              WHERE h.tenant_id = t.id AND h.last_at >= clock_timestamp() - interval '2 minutes'
                AND h.next_sequence - 1 > coalesce((
                  SELECT max(l.to_sequence) FROM seal_leaf l
                  WHERE l.tenant_id = h.tenant_id AND l.run_id = h.run_id AND l.leaf_type = 'seal/v1'), -1))
      OR coalesce((SELECT max(l.leaf_index) + 1 FROM seal_leaf l WHERE l.tenant_id = t.id), 0)
         > coalesce((SELECT max(c.size) FROM checkpoint c WHERE c.tenant_id = t.id), 0)
    WHEN 'fill-in-vectors' THEN
      EXISTS (SELECT FROM embedding_task e WHERE e.tenant_id = t.id AND e.next_at <= clock_timestamp())
    WHEN 'drop-old-answers' THEN
      EXISTS (SELECT FROM idempotency_key k WHERE k.tenant_id = t.id AND k.expires_at <= clock_timestamp())
    WHEN 'expire-records' THEN
      EXISTS (SELECT FROM memory_record m
              WHERE m.tenant_id = t.id AND m.status = 'active'
                -- The day where it is latest; the job asks what day it is there.
                AND m.valid_until < (clock_timestamp() AT TIME ZONE 'UTC' + interval '14 hours')::date)
    WHEN 'destroy-undo-copies' THEN
      EXISTS (SELECT FROM sealed_copy s WHERE s.tenant_id = t.id AND s.destroy_after <= clock_timestamp())
    WHEN 'run-erasures' THEN
      EXISTS (SELECT FROM erasure e
              WHERE e.tenant_id = t.id AND e.status <> 'completed' AND e.next_at <= clock_timestamp()
                AND (e.lease_until IS NULL OR e.lease_until <= clock_timestamp()))
    WHEN 'verify' THEN
      EXISTS (SELECT FROM verification_job v WHERE v.tenant_id = t.id AND v.status IN ('queued', 'running'))
    WHEN 'refresh-stale' THEN
      EXISTS (SELECT FROM fact_freshness s JOIN fact f ON f.tenant_id = s.tenant_id AND f.id = s.fact_id
              WHERE s.tenant_id = t.id AND s.strategy = 'background' AND s.ttl_seconds IS NOT NULL
                AND (s.last_verified_at IS NULL
                     OR s.last_verified_at + s.ttl_seconds * interval '1 second' < clock_timestamp())
                AND (s.last_failure IS NULL OR s.last_attempt_at IS NULL
                     OR s.last_attempt_at < clock_timestamp() - interval '5 minutes')
                AND f.deleted_at IS NULL AND f.review IS NULL AND (f.expires_at IS NULL OR f.expires_at > clock_timestamp()))
    WHEN 'reindex' THEN
      EXISTS (SELECT FROM reindexing r
              WHERE r.tenant_id = t.id
                AND (r.looked_through_at IS NULL OR r.requested_at < clock_timestamp() - interval '60 seconds'))
    WHEN 'deliver-webhooks' THEN
      EXISTS (SELECT FROM webhook h JOIN webhook_delivery d ON d.tenant_id = h.tenant_id AND d.webhook_id = h.id
              WHERE h.tenant_id = t.id AND h.disabled_because IS NULL AND d.status = 'pending' AND d.next_at <= clock_timestamp()
                AND (h.rests_until IS NULL OR h.rests_until <= clock_timestamp())
                AND (d.lease_until IS NULL OR d.lease_until <= clock_timestamp()))
    WHEN 'prune-webhook-log' THEN
      EXISTS (SELECT FROM webhook_event e
              WHERE e.tenant_id = t.id AND e.occurred_at < clock_timestamp() - interval '30 days')
    WHEN 'finish-holds' THEN
      EXISTS (SELECT FROM legal_hold h
              WHERE h.tenant_id = t.id AND h.taken_in_at IS NULL AND h.released_at IS NULL)
      OR EXISTS (SELECT FROM legal_hold h
                 WHERE h.tenant_id = t.id AND h.released_at IS NOT NULL
                   AND (EXISTS (SELECT FROM fact_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id)
                        OR EXISTS (SELECT FROM record_hold k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id)))
    -- What has no sign of its own is due whenever it is asked for.
    ELSE true
  END
$$;
RESET ROLE;

REVOKE SELECT (queued_at) ON webhook_delivery FROM kindmem_search;
ALTER TABLE webhook DROP COLUMN is_slow;
