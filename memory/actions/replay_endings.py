"""After a restore: what ended since the backup was made ends again, before anything is served.

Forgotten or discarded is a tombstone again, expired is expired; what a correction replaced is not served, though the correction
itself is lost with the backup; what was withdrawn or quarantined waits for an admin, as does a fact that has another content
since, while a cached view is stale until it is refreshed. What an undo had brought back stays. Ids are found by keyed digests.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.api.idempotency import withhold
from memory.destruction import Due, destroy_facts
from memory.endings import write_down_after_commit
from memory.hold_naming import FACT_IS_HELD
from memory.ids import new_id
from memory.instants import instant
from memory.records import clock
from memory.records.acts import Act, ended
from memory.records.ending_again import REASON, dispute_again, end_again, set_aside_again
from memory.search.index import remove_index
from memory.tenancy import tenant_context

AT_ONCE: Final = 100
_MARKED = """
INSERT INTO forgotten_fingerprint (tenant_id, digest, kind, record_id, made_at)
VALUES (%(tenant)s::uuid, %(digest)s::bytea, %(mark)s::text, %(record)s::text, %(at)s::timestamptz)
ON CONFLICT ON CONSTRAINT forgotten_fingerprint_pkey DO NOTHING
"""
_UNMARKED = """
DELETE FROM forgotten_fingerprint
WHERE tenant_id = %(tenant)s::uuid AND digest = %(digest)s::bytea AND kind = %(mark)s::text AND record_id = %(record)s::text
"""
_LOCK_FACTS = f"""
SELECT f.id, f.type, {FACT_IS_HELD} FROM fact f
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = ANY(%(ids)s::text[]) ORDER BY f.id FOR UPDATE OF f
"""
_CLOSE = """
WITH closed AS (
  UPDATE fact_revision r
  SET invalidated_at = greatest(clock_timestamp(), r.recorded_at + interval '1 microsecond'),
      invalidated_by = %(by)s::text, invalidation_reason = 'deleted'
  WHERE r.tenant_id = %(tenant)s::uuid AND r.fact_id = ANY(%(ids)s::text[]) AND r.invalidated_at IS NULL
  RETURNING r.fact_id, r.invalidated_at
)
UPDATE fact f SET deleted_at = c.invalidated_at, wording = NULL FROM closed c
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = c.fact_id AND f.deleted_at IS NULL
RETURNING f.id
"""
_SET_ASIDE = """
UPDATE fact f SET review = 'pending', review_reason = 'restored'
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = ANY(%(ids)s::text[]) AND f.review IS NULL AND f.deleted_at IS NULL
RETURNING f.id
"""
# As the ledger knew it: a fact that went on since has its own story.
_STILL_OLD = """
SELECT f.id, r.source_text IS NOT NULL FROM unnest(%(ids)s::text[], %(versions)s::int[]) AS x (id, version)
JOIN fact f ON f.tenant_id = %(tenant)s::uuid AND f.id = x.id AND f.current_version <= x.version AND f.deleted_at IS NULL
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
"""
_STALE = """
UPDATE fact_freshness SET last_verified_at = NULL
WHERE tenant_id = %(tenant)s::uuid AND fact_id = ANY(%(ids)s::text[]) AND last_verified_at IS NOT NULL
"""


@dataclass(slots=True)
class Ended:
    """One thing as it stood last: what became of it, and by which digests it is known, those of what an undo brought back too."""

    at: datetime
    item: Literal["record", "fact"]
    act: str
    digests: set[bytes]
    version: int | None = None


@dataclass(slots=True)
class EndedAgain:
    """`counts`: what became of how many; `held`: what a hold keeps as it is."""

    counts: Counter[str] = field(default_factory=Counter)
    held: list[str] = field(default_factory=list)


_ASIDE, _DISPUTE, _END = "set-aside", "disputed", "end"
_TAKES_BACK: Final[Mapping[str, tuple[str, ...]]] = {
    "undone": (_END,),
    "back": (_ASIDE,),
    "undisputed": (_DISPUTE,),
    "kept": (_END, _ASIDE, _DISPUTE),
}


def as_they_stood(lines: Iterable[Mapping[str, Any]]) -> list[Ended]:
    """What the lines say of each thing in the end, in the order of time. Marks are left out."""
    stood: dict[tuple[str, bytes], dict[str, Ended]] = {}
    root_of: dict[bytes, bytes] = {}
    known: dict[bytes, set[bytes]] = {}
    for line in sorted(lines, key=lambda one: instant(one["at"])):
        if "mark" in line:
            continue
        item, act = line["item"], line["act"]
        digest = bytes.fromhex(line["hmac"])
        root = root_of.get(digest, digest)
        if act == "undone":
            was = bytes.fromhex(line["was"])
            root = root_of[digest] = root_of.get(was, was)
            known.setdefault(root, {root}).update((was, digest))
        states = stood.setdefault((item, root), {})
        for state in _TAKES_BACK.get(act, ()):
            states.pop(state, None)
        if act not in _TAKES_BACK:
            state = act if act in (_ASIDE, _DISPUTE) else _END
            digests = known.setdefault(root, {root})
            states[state] = Ended(instant(line["at"]), item, act, digests, line.get("version"))
    last = [
        next((states[one] for one in (_END, _ASIDE, _DISPUTE) if one in states), None)
        for states in stood.values()
    ]
    return sorted((one for one in last if one is not None), key=lambda one: one.at)


def end_what_had_ended(
    *, principal: Principal, things: Sequence[Ended], ids: Mapping[tuple[str, bytes], str]
) -> EndedAgain:
    """End them again, some a transaction. Opens its own transactions; call it outside any. May be called again."""
    again = EndedAgain()
    for start in range(0, len(things), AT_ONCE):
        with tenant_context(principal.tenant_id):
            _some(principal, things[start : start + AT_ONCE], ids, again)
            write_down_after_commit(principal.tenant_id)
    return again


def _some(
    principal: Principal,
    things: Sequence[Ended],
    ids: Mapping[tuple[str, bytes], str],
    again: EndedAgain,
) -> None:
    by_act: dict[tuple[str, str], dict[str, int | None]] = {}
    for thing in things:
        for digest in sorted(thing.digests):
            if (found := ids.get((thing.item, digest))) is not None:
                by_act.setdefault((thing.item, thing.act), {})[found] = thing.version
    counts: Counter[str] = Counter()
    held: list[str] = []
    for (item, act), named in by_act.items():
        if item == "record":
            _records(principal, act, list(named), counts, held)
        else:
            _facts(principal, act, named, counts, held)
    if counts or held:
        again.counts += counts
        again.held += held
        append_governance(
            principal=principal,
            payload={"type": "restore.ended-again", "counts": dict(counts), "held": held},
        )


_OF_RECORDS: Final = {"deleted": "forgotten", "expired": "expired", "superseded": "superseded"}


def _records(
    principal: Principal, act: str, ids: Sequence[str], counts: Counter[str], held: list[str]
) -> None:
    tenant_id = principal.tenant_id
    if act in ("set-aside", "disputed"):
        do = set_aside_again if act == "set-aside" else dispute_again
        if found := do(tenant_id, ids, clock.now()):
            counts[f"records.{act}"] += len(found)
        return
    doing = Act(principal, _OF_RECORDS[act])
    endings, kept = end_again(tenant_id, ids, doing.at, status=act)  # type: ignore[arg-type]  # one of _OF_RECORDS
    held += kept
    if endings:
        counts[f"records.{act}"] += len(endings)
        entry = append_governance(
            principal=principal,
            payload={"type": f"restore.{doing.name}", "recordIds": [one.id for one in endings]},
        )
        doing.keep(ended(endings, act), entry, reason_code=REASON)


def _facts(
    principal: Principal,
    act: str,
    named: Mapping[str, int | None],
    counts: Counter[str],
    held: list[str],
) -> None:
    tenant_id = principal.tenant_id
    parameters: dict[str, Any] = {"tenant": tenant_id, "ids": list(named), "by": principal.writer}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_FACTS, parameters)
        rows = cursor.fetchall()
        if act in ("deleted", "destroyed"):
            held += [fact_id for fact_id, _, is_held in rows if is_held]
            rows = [row for row in rows if not row[2]]
        free = [row[0] for row in rows]
        parameters["ids"] = free
        if act == "destroyed":
            due = [Due(fact_id, REASON, type=type) for fact_id, type, _ in rows]
            done = destroy_facts(tenant_id=tenant_id, due=due, cause="sweep", cause_id=new_id())
            counts["facts.destroyed"] += len(done.destroyed)
            held += done.held
        elif act == "deleted":
            cursor.execute(_CLOSE, parameters)
            gone = [row[0] for row in cursor.fetchall()]
            counts["facts.deleted"] += len(gone)
            remove_index(tenant_id=tenant_id, fact_ids=gone)
            _withhold(tenant_id, gone)
        elif act == "superseded":
            parameters["versions"] = [named[one] for one in free]
            cursor.execute(_STILL_OLD, parameters)
            is_view = dict(cursor.fetchall())
            cursor.execute(_STALE, {**parameters, "ids": [one for one in is_view if is_view[one]]})
            counts["facts.stale"] += cursor.rowcount
            _set_aside(principal, [one for one in is_view if not is_view[one]], counts)
        else:
            _set_aside(principal, free, counts)
    for name in [name for name, number in counts.items() if number == 0]:
        del counts[name]


def _set_aside(principal: Principal, ids: Sequence[str], counts: Counter[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SET_ASIDE, {"tenant": principal.tenant_id, "ids": list(ids)})
        found = [row[0] for row in cursor.fetchall()]
    counts["facts.set-aside"] += len(found)
    _withhold(principal.tenant_id, found)


def _withhold(tenant_id: UUID, fact_ids: Sequence[str]) -> None:
    for fact_id in fact_ids:
        withhold(tenant_id, f"fact:{fact_id}")


def set_marks_again(
    *,
    principal: Principal,
    lines: Iterable[Mapping[str, Any]],
    ids: Mapping[tuple[str, bytes], str],
) -> int:
    """What may not be said or guessed again, as it stood last; how many marks. Opens its own transaction."""
    last: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for line in sorted(lines, key=lambda one: instant(one["at"])):
        if "mark" in line:
            last[line["mark"], line["digest"], line["hmac"]] = line
    made = 0
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        for (mark, digest, hmac), line in last.items():
            parameters: dict[str, Any] = {
                "tenant": principal.tenant_id,
                "digest": bytes.fromhex(digest),
                "mark": mark,
                # Of a record that was written since the backup nothing is left but this.
                "record": ids.get(("record", bytes.fromhex(hmac)), f"lost:{hmac}"),
                "at": instant(line["at"]),
            }
            cursor.execute(_MARKED if line["act"] == "marked" else _UNMARKED, parameters)
            made += cursor.rowcount
    return made
