"""After a restore: let happen again what was decided since the backup was made, in the order in which it was.

Holds are placed again on what they name, and released again where two people had released them; erasures find their person by the
keyed hash and run to their end; what ended otherwise ends again, each thing as it stood last. What happened before the backup is
in it. In the order of time, because a hold that came after an erasure never stood in its way; an erasure counts from its request,
so that it finds its person before what it ended is gone.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.replay_endings import (
    Ended,
    as_they_stood,
    end_what_had_ended,
    set_marks_again,
)
from memory.actions.replay_erasures import replay_erasures
from memory.actions.run_erasure import run_erasure
from memory.erasure.found_by_digest import found_by_digest
from memory.erasure.ledger import ledger_key_id
from memory.hold_items import insert_hold, let_go
from memory.holds import HoldScope, NewHold
from memory.instants import day, instant
from memory.ledgers import Ledger
from memory.tenancy import tenant_context

Kind = Literal["hold", "release", "erasure", "end"]
Event = tuple[datetime, Kind, Any]


@dataclass(slots=True)
class Replayed:
    """How many of each happened again. `unfinished`: erasures that a hold stops; `unmatched`: those of another key.

    `ended`: what became of how many records and facts again; `marks`: what may not be said again; `still_held`: ids of what had
    ended, and a hold keeps.
    """

    holds: int = 0
    releases: int = 0
    erasures: int = 0
    unfinished: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    marks: int = 0
    still_held: list[str] = field(default_factory=list)

    def wire(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "releases": self.releases,
            "erasures": self.erasures,
            "unfinished": self.unfinished,
            "unmatched": self.unmatched,
            "ended": dict(sorted(self.ended.items())),
            "marks": self.marks,
            "stillHeld": self.still_held,
        }


def _nobody(done: int, all: int) -> None:
    """Nobody watches."""


def replay_ledgers(
    *,
    principal: Principal,
    ledger: Ledger,
    since: datetime,
    on_step: Callable[[int, int], None] = _nobody,
) -> Replayed:
    """Everything that the ledger says happened after `since`. Opens its own transactions; call it outside any.

    May be called again after it was cut off. Raises PermissionDenied.
    """
    principal.needs_role("admin", "owner")
    lines_since = [one for one in ledger.get("endings", ()) if instant(one["at"]) >= since]
    ends = [one for one in lines_since if one["keyId"] == ledger_key_id()]
    things = as_they_stood(ends)
    with tenant_context(principal.tenant_id):
        ids = found_by_digest(
            principal.tenant_id, [(one.item, key) for one in things for key in one.digests]
        )
    events = sorted([*_events(ledger, since), *_ends(things, ids)], key=lambda event: event[0])
    replayed, done = Replayed(), 0
    if len(ends) < len(lines_since):
        replayed.unmatched.append(f"{len(lines_since) - len(ends)} ends")
    for kind, group in itertools.groupby(events, key=lambda event: event[1]):
        lines = [event[2] for event in group]
        if kind == "erasure":
            _erase(principal, lines, replayed)
        elif kind == "end":
            again = end_what_had_ended(principal=principal, things=lines, ids=ids)
            replayed.ended += again.counts
            replayed.still_held += again.held
        for line in lines if kind in ("hold", "release") else ():
            with tenant_context(principal.tenant_id):
                if kind == "hold":
                    replayed.holds += _place(principal, line)
                else:
                    replayed.releases += _release(principal, line)
        done += len(lines)
        on_step(done, len(events))
    replayed.marks = set_marks_again(principal=principal, lines=ends, ids=ids)
    return replayed


def _ends(things: Sequence[Ended], ids: dict[tuple[str, bytes], str]) -> list[Event]:
    """What is there to end again."""
    return [
        (one.at, "end", one) for one in things if any((one.item, key) in ids for key in one.digests)
    ]


def _events(ledger: Ledger, since: datetime) -> list[Event]:
    """What was decided after `since`."""
    events: list[Event] = []
    for one in ledger.get("erasures", ()):
        # One that was asked for before and hasn't ended goes on as it is in the backup; one that was cancelled since is so again.
        if instant(one.get("completedAt") or one["createdAt"]) >= since:
            events.append((instant(one["createdAt"]), "erasure", one))
    for one in ledger.get("holds", ()):
        if instant(one["placedAt"]) >= since:
            events.append((instant(one["placedAt"]), "hold", one))
        if "releasedAt" in one and instant(one["releasedAt"]) >= since:
            events.append((instant(one["releasedAt"]), "release", one))
    return events


def _scope_of(said: dict[str, Any]) -> HoldScope:
    def time(name: str) -> datetime | None:
        return instant(said[name]) if name in said else None

    return HoldScope(
        subject_ids=tuple(said.get("subjects", ())),
        fact_types=tuple(said.get("types", ())),
        run_ids=tuple(said.get("runs", ())),
        written_from=time("from"),
        written_until=time("until"),
        fact_ids=tuple(said.get("facts", ())),
        record_ids=tuple(said.get("records", ())),
        covers_future=said.get("futureItems", False),
    )


def _place(principal: Principal, line: dict[str, Any]) -> int:
    """Place the hold unless it is there; 1 when it was placed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM legal_hold WHERE tenant_id = %s::uuid AND id = %s::uuid",
            [principal.tenant_id, line["id"]],
        )
        if cursor.fetchone() is not None:
            return 0
    hold = NewHold(
        matter=line["matter"],
        reason=line["reason"],
        scope=_scope_of(line["scope"]),
        review_on=day(line["reviewOn"]),
        id=UUID(line["id"]),
        placed_by=line["placedBy"],
        placed_at=instant(line["placedAt"]),
    )
    facts, records = insert_hold(principal, hold)
    append_governance(
        principal=principal,
        payload={
            "type": "hold.replayed",
            "holdId": line["id"],
            "facts": facts,
            "records": records,
            "placedBy": line["placedBy"],
        },
    )
    return 1


_DECIDED = """
INSERT INTO hold_release (tenant_id, id, hold_id, reason, requested_by, requested_at, decision, decided_by, decided_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(hold)s::uuid, %(reason)s::text, %(asked_by)s::text, %(asked_at)s::timestamptz,
        'approved', %(by)s::text, %(at)s::timestamptz)
ON CONFLICT ON CONSTRAINT hold_release_pkey DO UPDATE
SET decision = excluded.decision, decided_by = excluded.decided_by, decided_at = excluded.decided_at
"""
_RELEASE = """
UPDATE legal_hold SET released_at = %(released_at)s::timestamptz, released_because = %(because)s::text
WHERE tenant_id = %(tenant)s::uuid AND id = %(hold)s::uuid AND released_at IS NULL
"""


def _release(principal: Principal, line: dict[str, Any]) -> int:
    """Release the hold as the two people had; 1 when it was not released."""
    decided = line["release"]
    parameters = {
        "tenant": principal.tenant_id,
        "hold": line["id"],
        "id": decided["id"],
        "reason": decided["reason"],
        "asked_by": decided["requestedBy"],
        "asked_at": decided["requestedAt"],
        "by": decided["decidedBy"],
        "at": decided["decidedAt"],
        "released_at": line["releasedAt"],
        "because": line.get("releasedBecause"),
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM legal_hold WHERE tenant_id = %(tenant)s::uuid AND id = %(hold)s::uuid AND released_at IS NULL",
            {"tenant": principal.tenant_id, "hold": line["id"]},
        )
        if cursor.fetchone() is None:
            return 0
        cursor.execute(_DECIDED, parameters)
        cursor.execute(_RELEASE, parameters)
    freed = let_go(principal.tenant_id, UUID(line["id"]))
    append_governance(
        principal=principal,
        payload={
            "type": "hold.release-replayed",
            "holdId": line["id"],
            "requestedBy": decided["requestedBy"],
            "approvedBy": decided["decidedBy"],
            "counts": dict(freed),
        },
    )
    return 1


def _erase(principal: Principal, lines: Sequence[dict[str, Any]], replayed: Replayed) -> None:
    """Erase again what came back, each to its end, before anything else happens."""
    with tenant_context(principal.tenant_id):
        replay = replay_erasures(principal=principal, entries=lines)
    eraser = replace(principal, id="eraser", name="eraser")
    for erasure_id in replay.replayed:
        done = run_erasure(principal=eraser, erasure_id=UUID(erasure_id))
        if done.status == "completed":
            replayed.erasures += 1
        else:
            replayed.unfinished.append(erasure_id)
    replayed.unmatched += [one for one, _reason in replay.unmatched]
