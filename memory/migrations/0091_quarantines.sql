-- What one key or one run wrote, out of use until somebody decides: lifted, or rolled back to what was there before.
ALTER TABLE memory_record DROP CONSTRAINT memory_record_review_is_known;
ALTER TABLE memory_record ADD CONSTRAINT memory_record_review_is_known CHECK (review IN ('pending', 'withdrawn', 'quarantined'));
ALTER TABLE fact DROP CONSTRAINT fact_review_is_known;
ALTER TABLE fact ADD CONSTRAINT fact_review_is_known CHECK (review IN ('pending', 'quarantined'));

CREATE TABLE quarantine (
  tenant_id uuid NOT NULL CONSTRAINT quarantine_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL,
  selector text NOT NULL CONSTRAINT quarantine_selector_is_known CHECK (selector IN ('key', 'run')),
  -- A key's prefix, or a run's id.
  selector_id text NOT NULL CONSTRAINT quarantine_selector_id_has_length CHECK (length(selector_id) BETWEEN 1 AND 256),
  since timestamptz NOT NULL,
  reason text NOT NULL CONSTRAINT quarantine_reason_has_length CHECK (length(reason) BETWEEN 1 AND 2000),
  status text NOT NULL DEFAULT 'active'
    CONSTRAINT quarantine_status_is_known CHECK (status IN ('active', 'rolling-back', 'lifted', 'rolled-back')),
  placed_by text NOT NULL,
  placed_at timestamptz NOT NULL,
  ended_by text,
  ended_at timestamptz,
  CONSTRAINT quarantine_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT quarantine_ended_says_when
    CHECK ((ended_at IS NULL) = (ended_by IS NULL) AND (ended_at IS NOT NULL) = (status IN ('lifted', 'rolled-back')))
);
CREATE INDEX quarantine_newest_first ON quarantine (tenant_id, placed_at DESC, id DESC);
SELECT kindmem_protect('quarantine', 'SELECT, INSERT');
GRANT UPDATE (status, ended_by, ended_at) ON quarantine TO kindmem_app;

-- What a quarantine took out of use, and what became of each. Ids alone.
CREATE TABLE quarantine_item (
  tenant_id uuid NOT NULL,
  quarantine_id uuid NOT NULL,
  kind text NOT NULL CONSTRAINT quarantine_item_kind_is_known CHECK (kind IN ('record', 'fact')),
  item_id text NOT NULL,
  outcome text CONSTRAINT quarantine_item_outcome_is_known
    CHECK (outcome IN ('lifted', 'replaced', 'removed', 'restored', 'held', 'gone')),
  -- What came back in its place.
  restored_id text,
  CONSTRAINT quarantine_item_pkey PRIMARY KEY (tenant_id, quarantine_id, kind, item_id),
  CONSTRAINT quarantine_item_of_quarantine FOREIGN KEY (tenant_id, quarantine_id) REFERENCES quarantine (tenant_id, id)
);
CREATE INDEX quarantine_item_left ON quarantine_item (tenant_id, quarantine_id, kind, item_id) WHERE outcome IS NULL;
SELECT kindmem_protect('quarantine_item', 'SELECT, INSERT');
GRANT UPDATE (outcome, restored_id) ON quarantine_item TO kindmem_app;
