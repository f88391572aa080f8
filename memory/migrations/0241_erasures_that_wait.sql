-- `reaches_before`: of one that a hold stopped, or that is done again after a restore. It takes what was there until then, and
-- nobody's writes wait for it. `cancelled_at`: ended by an admin because of a hold.
ALTER TABLE erasure
  ADD COLUMN reaches_before timestamptz,
  ADD COLUMN cancelled_at timestamptz,
  ADD CONSTRAINT erasure_cancelled_is_over CHECK (cancelled_at IS NULL OR status = 'completed');

CREATE OR REPLACE FUNCTION refuse_while_erasing(tenant uuid, people text[], thread text, fact_id text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(new_items_lock(tenant));
  IF EXISTS (SELECT 1 FROM erasure e
             WHERE e.tenant_id = tenant AND e.status <> 'completed' AND e.reaches_before IS NULL
               AND CASE e.selector_kind WHEN 'conversation' THEN e.selector_id = thread WHEN 'fact' THEN e.selector_id = fact_id
                   ELSE e.selector_id = ANY (people) OR e.selector_in_log = ANY (people) END) THEN
    RAISE EXCEPTION 'an erasure is running' USING ERRCODE = '23514', CONSTRAINT = 'erasure_is_not_running', TABLE = 'erasure';
  END IF;
END
$$;

-- An entry may name a person as its actor alone. Who writes under their own name is meant as a writer: members go by a number.
CREATE FUNCTION person_in_actor(run_id text, actor text, writer text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN actor IS DISTINCT FROM writer AND left(run_id, 8) <> 'kindmem.'
              THEN regexp_replace(actor, '^(user|participant):(?=.)', '') END
$$;

CREATE OR REPLACE FUNCTION new_entries_meet_no_erasure() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  named record;
BEGIN
  FOR named IN
    SELECT a.tenant_id, array_agg(DISTINCT p.id) AS people, a.thread_id AS thread
    FROM added a, LATERAL (VALUES (a.user_id), (a.participant_id), (person_in_actor(a.run_id, a.actor, a.writer))) p (id)
    WHERE p.id IS NOT NULL OR a.thread_id IS NOT NULL
    GROUP BY a.tenant_id, a.thread_id
  LOOP
    PERFORM refuse_while_erasing(named.tenant_id, named.people, named.thread, NULL);
  END LOOP;
  RETURN NULL;
END
$$;

-- By whom something was asked for from a page link, and a hold refused it.
GRANT UPDATE (asked_by) ON hold_refusal TO kindmem_app;

-- As before; and of a released hold an erasure hides whom its scope named.
CREATE OR REPLACE FUNCTION legal_hold_is_only_released() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF (OLD.released_at IS NOT NULL
      AND (to_jsonb(OLD) - 'scope_text' - 'subject_ids') <> (to_jsonb(NEW) - 'scope_text' - 'subject_ids'))
     OR (OLD.released_at IS NULL
         AND (to_jsonb(OLD) - 'released_at' - 'released_because' - 'review_on' - 'taken_in_at'
              - 'taking_in' - 'taken_in_after' - 'named_until')
          <> (to_jsonb(NEW) - 'released_at' - 'released_because' - 'review_on' - 'taken_in_at'
              - 'taking_in' - 'taken_in_after' - 'named_until'))
     -- What it named is taken in once; until when it names what is there is said once.
     OR (OLD.taken_in_at IS NOT NULL AND (OLD.taken_in_at, OLD.taking_in, OLD.taken_in_after)
                                         IS DISTINCT FROM (NEW.taken_in_at, NEW.taking_in, NEW.taken_in_after))
     OR (OLD.named_until IS NOT NULL AND NEW.named_until IS DISTINCT FROM OLD.named_until)
     OR (NEW.released_at IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM hold_release r
           WHERE r.tenant_id = NEW.tenant_id AND r.hold_id = NEW.id AND r.decision = 'approved')) THEN
    RAISE EXCEPTION 'a hold is released once, by two people, and never changed'
      USING ERRCODE = '23514', CONSTRAINT = 'legal_hold_is_only_released', TABLE = 'legal_hold';
  END IF;
  RETURN NEW;
END
$$;
