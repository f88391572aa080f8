-- Webhooks: which addresses hear of what, what there is to tell (ids and codes, written with the act itself), and how telling went.

CREATE TABLE webhook (
  tenant_id uuid NOT NULL CONSTRAINT webhook_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  name text NOT NULL CONSTRAINT webhook_name_has_length CHECK (length(name) BETWEEN 1 AND 100),
  url text NOT NULL CONSTRAINT webhook_url_has_length CHECK (length(url) BETWEEN 1 AND 2048),
  -- Empty: every event.
  events text[] NOT NULL DEFAULT '{}',
  -- Nonce and AES-256-GCM ciphertext, under a key outside the database.
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_until timestamptz,
  disabled_because text CONSTRAINT webhook_disabled_because_is_known CHECK (disabled_because IN ('paused', 'gone', 'failing')),
  failing_since timestamptz,
  -- While it fails it hears of one event at a time, and rests between them.
  failures integer NOT NULL DEFAULT 0,
  rests_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  changed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT webhook_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT webhook_previous_secret_says_when CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
);
SELECT kindmem_protect('webhook', 'SELECT, INSERT, UPDATE, DELETE');

CREATE TABLE webhook_event (
  tenant_id uuid NOT NULL CONSTRAINT webhook_event_belongs_to_tenant REFERENCES tenant (id),
  id text NOT NULL CONSTRAINT webhook_event_id_has_shape CHECK (id ~ '^evt_[0-9a-f]{32}$'),
  type text NOT NULL,
  occurred_at timestamptz NOT NULL,
  body_text text NOT NULL,
  CONSTRAINT webhook_event_pkey PRIMARY KEY (tenant_id, id)
);
CREATE INDEX webhook_event_by_time ON webhook_event (tenant_id, occurred_at);
SELECT kindmem_protect('webhook_event', 'SELECT, INSERT, DELETE');

CREATE TABLE webhook_delivery (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  event_id text NOT NULL,
  status text NOT NULL DEFAULT 'pending' CONSTRAINT webhook_delivery_status_is_known
    CHECK (status IN ('pending', 'delivered', 'failed')),
  -- Since it was asked for, or replayed: what the pauses and the last day count from.
  queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tries integer NOT NULL DEFAULT 0,
  -- In all; the last of them has this number in the log of attempts.
  attempts integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease_until timestamptz,
  ended_at timestamptz,
  CONSTRAINT webhook_delivery_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT webhook_delivery_once_an_event UNIQUE (tenant_id, webhook_id, event_id),
  CONSTRAINT webhook_delivery_is_of_webhook FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhook (tenant_id, id),
  CONSTRAINT webhook_delivery_is_of_event FOREIGN KEY (tenant_id, event_id) REFERENCES webhook_event (tenant_id, id),
  CONSTRAINT webhook_delivery_ended_says_when CHECK ((status = 'pending') = (ended_at IS NULL))
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (tenant_id, webhook_id, next_at) WHERE status = 'pending';
CREATE INDEX webhook_delivery_newest_first ON webhook_delivery (tenant_id, webhook_id, queued_at DESC, id DESC);
CREATE INDEX webhook_delivery_by_event ON webhook_delivery (tenant_id, event_id);
SELECT kindmem_protect('webhook_delivery', 'SELECT, INSERT, UPDATE, DELETE');

-- What came of each attempt; no body, neither ours nor theirs.
CREATE TABLE webhook_attempt (
  tenant_id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  number integer NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  status smallint,
  error text CONSTRAINT webhook_attempt_error_is_known CHECK (error IN (
    'fetch-refused', 'fetch-timeout', 'fetch-too-large', 'fetch-failed')),
  duration_ms integer NOT NULL CONSTRAINT webhook_attempt_duration_is_not_negative CHECK (duration_ms >= 0),
  CONSTRAINT webhook_attempt_pkey PRIMARY KEY (tenant_id, delivery_id, number),
  CONSTRAINT webhook_attempt_is_of_delivery FOREIGN KEY (tenant_id, delivery_id) REFERENCES webhook_delivery (tenant_id, id),
  CONSTRAINT webhook_attempt_says_how CHECK ((status IS NULL) <> (error IS NULL))
);
SELECT kindmem_protect('webhook_attempt', 'SELECT, INSERT, DELETE');

SELECT kindmem_definer_looks('webhook', 'tenant_id, id, disabled_because, rests_until');
SELECT kindmem_definer_looks('webhook_delivery', 'tenant_id, webhook_id, status, next_at, lease_until');
SELECT kindmem_definer_looks('webhook_event', 'tenant_id, occurred_at');

-- As before, and two more kinds of work.
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
    -- What has no sign of its own is due whenever it is asked for.
    ELSE true
  END
$$;
RESET ROLE;
