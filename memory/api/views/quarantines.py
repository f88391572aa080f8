"""Quarantines over HTTP: see what a key or a run wrote, take it out of use, lift that, or roll it back. For admins."""

from typing import Any

from memory.actions.lift_quarantine import lift_quarantine
from memory.actions.place_quarantine import place_quarantine
from memory.actions.roll_back_quarantine import roll_back_quarantine
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, shape
from memory.errors import BadInput
from memory.instants import instant
from memory.quarantines import (
    SHOWN,
    QuarantineView,
    Selector,
    Suspect,
    find_quarantine,
    list_quarantines,
    quarantined,
    suspects,
)

TAG = "Quarantines"
_COUNT = {"type": "integer", "minimum": 0}
_SELECTOR: dict[str, Any] = {"key": ID, "run": ID, "since": INSTANT}
_REASON = {"type": "string", "minLength": 1, "maxLength": 2000}
PREVIEW = Shape(shape(_SELECTOR))
PLACE = Shape(shape({**_SELECTOR, "reason": _REASON}, required=("reason",)))
_ITEM: dict[str, Any] = {
    "type": "object",
    "required": ["kind", "id", "name", "held"],
    "properties": {
        "kind": {"enum": ["record", "fact"]},
        "id": ID,
        "name": TEXT,
        "subjectId": TEXT,
        "held": {"type": "boolean"},
        "outcome": {"enum": ["lifted", "replaced", "removed", "restored", "held", "gone"]},
        "restoredId": TEXT,
    },
}
_ITEMS = {"type": "array", "items": _ITEM}
PREVIEWED: dict[str, Any] = {
    "type": "object",
    "required": ["records", "facts", "held", "first"],
    "properties": {"records": _COUNT, "facts": _COUNT, "held": _COUNT, "first": _ITEMS},
}
QUARANTINE: dict[str, Any] = {
    "type": "object",
    "required": [
        *("id", "since", "reason", "status", "placedBy", "placedAt"),
        *("records", "facts", "left", "outcomes"),
    ],
    "properties": {
        "id": ID,
        **_SELECTOR,
        "reason": TEXT,
        "status": {"enum": ["active", "rolling-back", "lifted", "rolled-back"]},
        "placedBy": TEXT,
        "placedAt": INSTANT,
        "records": _COUNT,
        "facts": _COUNT,
        "left": _COUNT,
        "outcomes": {"type": "object"},
        "endedBy": TEXT,
        "endedAt": INSTANT,
        "first": _ITEMS,
    },
}
_CLOSED = ("quarantine-not-found", "quarantine-closed", "permission-denied")


def _selector(said: dict[str, Any]) -> Selector:
    """Raises BadInput unless it names a key or a run, and not both."""
    since = instant(said["since"]) if "since" in said else None
    if ("key" in said) == ("run" in said):
        raise BadInput.at("/key", "or run is required, and not both")
    if "key" in said:
        return Selector("key", said["key"], since)
    return Selector("run", said["run"], since)


def _with_first(call: Call, view: QuarantineView) -> dict[str, Any]:
    first = quarantined(call.principal.tenant_id, view.id)
    return {**view.wire(), "first": [one.wire() for one in first]}


class Quarantines(ApiView):
    @operation(
        id="memory.listQuarantines",
        summary="List quarantines, newest first (admin)",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(QUARANTINE)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listQuarantines", {}, call.query["cursor"])
        found = list_quarantines(
            call.principal.tenant_id,
            after=(position[0], position[1]) if position else None,
            limit=limit + 1,
        )

        def cursor_after(one: QuarantineView) -> str:
            return make_cursor(call.principal, "listQuarantines", {}, [one.placed_at, one.id])

        return Answer(200, page(found, limit, render=QuarantineView.wire, next_cursor=cursor_after))

    @operation(
        id="memory.placeQuarantine",
        summary="Take all that a key or a run wrote out of use (admin)",
        description=(
            "At once and whole: records written with the key, or whose evidence is of the run, what was derived from them, and "
            "facts whose current revision was. `key` is a key's prefix; `since` narrows. No read finds any of it until the "
            "quarantine is lifted or rolled back. The key itself goes on working: revoke it too."
        ),
        ability="write",
        body=PLACE,
        answers={201: QUARANTINE},
        changes=True,
        errors=("bad-input", "permission-denied", "nothing-to-quarantine"),
        example={"run": "trip-pune", "reason": "A page that the run read gave it orders"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        view = place_quarantine(
            principal=call.principal,
            selector=_selector(call.body),
            reason=call.body["reason"],
        )
        return Answer(201, _with_first(call, view))


class QuarantinePreview(ApiView):
    @operation(
        id="memory.previewQuarantine",
        summary="What a quarantine would take out of use now (admin)",
        description=f"Counts, and the first {SHOWN}.",
        ability="read",
        body=PREVIEW,
        answers={200: PREVIEWED},
        errors=("bad-input", "permission-denied"),
        example={"key": "a1b2c3d4e5"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        found = suspects(call.principal.tenant_id, _selector(call.body))
        body = {
            "records": sum(one.kind == "record" for one in found),
            "facts": sum(one.kind == "fact" for one in found),
            "held": sum(one.is_held for one in found),
            "first": [Suspect.wire(one) for one in found[:SHOWN]],
        }
        return Answer(200, body)


class Quarantine(ApiView):
    @operation(
        id="memory.getQuarantine",
        summary="One quarantine, and what became of what it took out of use (admin)",
        ability="read",
        answers={200: QUARANTINE},
        errors=("quarantine-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        view = find_quarantine(call.principal.tenant_id, call.path["quarantine_id"])
        return Answer(200, _with_first(call, view))


class QuarantineLift(ApiView):
    @operation(
        id="memory.liftQuarantine",
        summary="Lift a quarantine: all of it is served again (admin)",
        description="A record whose place somebody filled meanwhile was `replaced`.",
        ability="write",
        answers={200: QUARANTINE},
        changes=True,
        errors=_CLOSED,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        view = lift_quarantine(principal=call.principal, quarantine_id=call.path["quarantine_id"])
        return Answer(200, _with_first(call, view))


class QuarantineRollBack(ApiView):
    @operation(
        id="memory.rollBackQuarantine",
        summary="Roll back: it ends, and what it superseded is served again (admin)",
        description=(
            "In batches: while `left` is not 0, call it again, each time with another Idempotency-Key, if any. "
            "A held record is sealed; a held fact stays out of use, as it is."
        ),
        ability="write",
        answers={200: QUARANTINE},
        outside=True,
        changes=True,
        roles=("admin", "owner"),
        errors=_CLOSED,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        view = roll_back_quarantine(
            principal=call.principal, quarantine_id=call.path["quarantine_id"]
        )
        return Answer(200, view.wire())
