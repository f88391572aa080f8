-- What ended, until it is written down outside the database: a restored backup is older than that, and would bring it back.
CREATE TABLE ended_item (
  tenant_id uuid NOT NULL CONSTRAINT ended_item_belongs_to_tenant REFERENCES tenant (id),
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  item text NOT NULL CONSTRAINT ended_item_is_known CHECK (item IN ('record', 'fact')),
  item_id text NOT NULL,
  -- `back`: no longer set aside; `kept`: what came back with a backup may be used.
  act text NOT NULL CONSTRAINT ended_item_act_is_known CHECK (act IN (
    'deleted', 'superseded', 'expired', 'destroyed', 'set-aside', 'back', 'kept', 'disputed', 'undisputed', 'undone', 'marked', 'unmarked')),
  -- Of what an undo brought back: what it was.
  was_id text,
  -- Of a fact: the revision that was superseded.
  version integer,
  -- Of a mark: its kind and its keyed digest.
  mark text,
  digest bytea,
  ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT ended_item_pkey PRIMARY KEY (tenant_id, id)
);
CREATE INDEX ended_item_oldest_first ON ended_item (tenant_id, ended_at, id);
SELECT kindmem_protect('ended_item', 'SELECT, INSERT, DELETE');

CREATE FUNCTION note_ended_record() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  what text := CASE
    WHEN NEW.status <> OLD.status THEN NEW.status
    WHEN NEW.review IN ('withdrawn', 'quarantined') AND NEW.review IS DISTINCT FROM OLD.review THEN 'set-aside'
    WHEN NEW.review IS NULL AND OLD.review IS NOT NULL THEN CASE OLD.review_reason WHEN 'restored' THEN 'kept' ELSE 'back' END
    WHEN NEW.disputed_at IS NOT NULL AND OLD.disputed_at IS NULL THEN 'disputed'
    WHEN NEW.disputed_at IS NULL AND OLD.disputed_at IS NOT NULL THEN 'undisputed' END;
BEGIN
  IF what IS NOT NULL THEN
    INSERT INTO ended_item (tenant_id, item, item_id, act) VALUES (NEW.tenant_id, 'record', NEW.id, what);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER memory_record_notes_its_end AFTER UPDATE ON memory_record FOR EACH ROW
  WHEN (OLD.status <> NEW.status OR OLD.review IS DISTINCT FROM NEW.review OR OLD.disputed_at IS DISTINCT FROM NEW.disputed_at)
  EXECUTE FUNCTION note_ended_record();

CREATE FUNCTION note_undone_end() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO ended_item (tenant_id, item, item_id, act, was_id)
  VALUES (NEW.tenant_id, 'record', NEW.record_id, 'undone', NEW.from_record_id);
  RETURN NULL;
END
$$;
CREATE TRIGGER record_act_notes_what_came_back AFTER INSERT ON record_act FOR EACH ROW
  WHEN (NEW.act IN ('undone', 'rolled-back') AND NEW.from_record_id IS NOT NULL)
  EXECUTE FUNCTION note_undone_end();

CREATE FUNCTION note_mark() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO ended_item (tenant_id, item, item_id, act, mark, digest)
    VALUES (OLD.tenant_id, 'record', OLD.record_id, 'unmarked', OLD.kind, OLD.digest);
  ELSE
    INSERT INTO ended_item (tenant_id, item, item_id, act, mark, digest)
    VALUES (NEW.tenant_id, 'record', NEW.record_id, 'marked', NEW.kind, NEW.digest);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER forgotten_fingerprint_is_noted AFTER INSERT OR DELETE ON forgotten_fingerprint
  FOR EACH ROW EXECUTE FUNCTION note_mark();

CREATE FUNCTION note_closed_revision() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO ended_item (tenant_id, item, item_id, act, version)
  VALUES (NEW.tenant_id, 'fact', NEW.fact_id,
          CASE NEW.invalidation_reason WHEN 'superseded' THEN 'superseded' ELSE 'deleted' END,
          CASE NEW.invalidation_reason WHEN 'superseded' THEN NEW.version END);
  RETURN NULL;
END
$$;
CREATE TRIGGER fact_revision_notes_its_end AFTER UPDATE ON fact_revision FOR EACH ROW
  WHEN (OLD.invalidated_at IS NULL AND NEW.invalidated_at IS NOT NULL)
  EXECUTE FUNCTION note_closed_revision();

CREATE FUNCTION note_ended_fact() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO ended_item (tenant_id, item, item_id, act) VALUES (OLD.tenant_id, 'fact', OLD.id, 'destroyed');
  ELSIF NEW.review IS NULL OR NEW.review = 'quarantined' THEN
    INSERT INTO ended_item (tenant_id, item, item_id, act)
    VALUES (NEW.tenant_id, 'fact', NEW.id,
            CASE WHEN NEW.review IS NOT NULL THEN 'set-aside' WHEN OLD.review_reason = 'restored' THEN 'kept' ELSE 'back' END);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER fact_notes_its_end AFTER DELETE ON fact FOR EACH ROW EXECUTE FUNCTION note_ended_fact();
CREATE TRIGGER fact_notes_that_it_is_set_aside AFTER UPDATE ON fact FOR EACH ROW
  WHEN (OLD.review IS DISTINCT FROM NEW.review)
  EXECUTE FUNCTION note_ended_fact();

-- What came back with a backup, and was replaced or set aside after it was made, waits for a person.
ALTER TABLE fact DROP CONSTRAINT fact_review_reason_is_known;
ALTER TABLE fact ADD CONSTRAINT fact_review_reason_is_known CHECK (review_reason IN ('instruction', 'wide', 'restored'));
