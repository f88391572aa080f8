"""Erasures over HTTP, as the public client has them. For admins; the worker does the work."""

from typing import Any

from memory.actions.cancel_erasure import cancel_erasure
from memory.actions.create_erasure import create_erasure
from memory.actions.replay_erasures import replay_erasures, resume_erasure
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, always, array_of, shape
from memory.erasure.ledger import (
    KINDS,
    PERSON_KINDS,
    ErasureView,
    find_erasure,
    list_erasures,
    whole_ledger,
)
from memory.erasure.preview import preview_erasure
from memory.erasure.stores import has_remains

TAG = "Erasures"
_UUID = {"type": "string", "format": "uuid"}
_COUNT = {"type": "integer", "minimum": 0}
_SUBJECT = shape({"kind": {"enum": list(PERSON_KINDS)}, "id": ID}, required=("kind", "id"))
CREATE = Shape(
    shape(
        {"factId": ID, "subject": _SUBJECT, "conversationId": ID},
        minProperties=1,
        maxProperties=1,
    )
)
RESUME = Shape(shape({"force": {"type": "boolean"}}))
_LEDGER_ENTRY = shape(
    {
        "id": _UUID,
        "selectorKind": {"enum": list(KINDS)},
        "selectorHmac": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "keyId": ID,
        "requestedBy": ID,
        "status": TEXT,
        "createdAt": INSTANT,
        "completedAt": INSTANT,
        "reachesBefore": INSTANT,
    },
    required=("id", "selectorKind", "requestedBy", "status", "createdAt"),
)
REPLAY = Shape(shape({"erasures": array_of(_LEDGER_ENTRY, most=10_000)}, required=("erasures",)))
ERASURE: dict[str, Any] = {
    "type": "object",
    "required": [
        *("id", "selectorKind", "status", "phase", "requestedBy"),
        *("matchable", "counts", "attempts", "createdAt"),
    ],
    "properties": {
        "id": _UUID,
        "selectorKind": {"enum": list(KINDS)},
        "selector": {"type": "object"},
        "status": {"enum": ["pending", "running", "completed", "cancelled"]},
        "phase": {"enum": ["seed", "expand", "settle", "erase", "done"]},
        "requestedBy": TEXT,
        "matchable": {"type": "boolean"},
        "counts": {"type": "object", "additionalProperties": _COUNT},
        "attempts": _COUNT,
        "lastError": TEXT,
        "forced": {"const": True},
        "createdAt": INSTANT,
        "startedAt": INSTANT,
        "completedAt": INSTANT,
        "replayedAt": INSTANT,
        "reachesBefore": INSTANT,
        "reachesNothing": {"const": True},
    },
}
_REACH = {
    "type": "object",
    "required": ["facts", "records", "logPayloads", "logIdentifiersRetained", "held"],
    "properties": {
        **dict.fromkeys(("facts", "records", "logPayloads", "logIdentifiersRetained"), _COUNT),
        "held": {"type": "array", "items": TEXT},
    },
}
_REPLAYED = {
    "type": "object",
    "required": ["replayed", "restored", "unmatched"],
    "properties": {
        "replayed": {"type": "array", "items": _UUID},
        "restored": {"type": "array", "items": _UUID},
        "unmatched": {"type": "array", "items": {"type": "object"}},
    },
}


def _selector(said: dict[str, Any]) -> tuple[str, str]:
    """What kind of thing a request names, and its id."""
    if "factId" in said:
        return "fact", said["factId"]
    if "conversationId" in said:
        return "conversation", said["conversationId"]
    return said["subject"]["kind"], said["subject"]["id"]


class Erasures(ApiView):
    @operation(
        id="memory.listErasures",
        summary="List erasures (admin)",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(ERASURE)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listErasures", {}, call.query["cursor"])
        found = list_erasures(
            call.principal.tenant_id,
            after=(position[0], position[1]) if position else None,
            limit=limit + 1,
        )

        def cursor_after(erasure: ErasureView) -> str:
            return make_cursor(call.principal, "listErasures", {}, [erasure.created_at, erasure.id])

        return Answer(200, page(found, limit, render=ErasureView.wire, next_cursor=cursor_after))

    @operation(
        id="memory.createErasure",
        summary="Erase a person, a conversation or a fact (admin)",
        description=(
            "Exactly one of `factId`, `subject`, `conversationId`. A hold that it reaches refuses it whole. `reachesNothing`: "
            "no fact, record or payload is there under this id now; is it written exactly so?"
        ),
        ability="write",
        body=CREATE,
        matters=always,
        answers={202: ERASURE},
        changes=True,
        errors=("bad-input", "unknown-field", "permission-denied", "legal-hold"),
        example={"subject": {"kind": "user", "id": "ann"}},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        said = call.body
        kind, selector_id = _selector(said)
        erasure = create_erasure(principal=call.principal, kind=kind, selector_id=selector_id)
        is_empty = not has_remains(call.principal.tenant_id, erasure)
        return Answer(202, erasure.wire() | ({"reachesNothing": True} if is_empty else {}))


class ErasurePreview(ApiView):
    @operation(
        id="memory.previewErasure",
        summary="What an erasure would reach now (admin)",
        description=(
            "`held`: what a hold keeps; with any of it the erasure would be refused whole. `logIdentifiersRetained`: entries "
            "whose hashed fields name the person, which stay."
        ),
        ability="read",
        body=CREATE,
        answers={200: _REACH},
        errors=("bad-input", "unknown-field", "permission-denied"),
        example={"subject": {"kind": "user", "id": "ann"}},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        kind, selector_id = _selector(call.body)
        return Answer(200, preview_erasure(call.principal, kind, selector_id).wire())


class Erasure(ApiView):
    @operation(
        id="memory.getErasure",
        summary="How far an erasure is (admin)",
        ability="read",
        answers={200: ERASURE},
        errors=("erasure-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        return Answer(200, find_erasure(call.principal.tenant_id, call.path["erasure_id"]).wire())


class ErasureResume(ApiView):
    @operation(
        id="memory.resumeErasure",
        summary="Try an unfinished erasure again now (admin)",
        ability="write",
        body=RESUME,
        matters=always,
        answers={200: ERASURE},
        changes=True,
        errors=("bad-input", "unknown-field", "erasure-not-found", "permission-denied"),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        erasure = resume_erasure(
            principal=call.principal,
            erasure_id=call.path["erasure_id"],
            force=call.body.get("force", False),
        )
        return Answer(200, erasure.wire())


class ErasureCancel(ApiView):
    @operation(
        id="memory.cancelErasure",
        summary="End an erasure that a legal hold stops (admin)",
        description=(
            "What it cleared stays cleared; `counts.held` says how much the holds keep. It is not taken up again when they are "
            "released: ask for it anew."
        ),
        ability="write",
        body=Shape(shape({})),
        matters=always,
        answers={200: ERASURE},
        changes=True,
        errors=(
            *("bad-input", "unknown-field", "erasure-not-found"),
            *("permission-denied", "erasure-not-held-up"),
        ),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        erasure = cancel_erasure(principal=call.principal, erasure_id=call.path["erasure_id"])
        return Answer(200, erasure.wire())


class ErasureExport(ApiView):
    @operation(
        id="memory.exportErasures",
        summary="The ledger of erasures, to keep elsewhere (admin)",
        description="Content-free. A restored backup loses the ledger too: replay it from this copy.",
        ability="read",
        answers={
            200: {"type": "object", "required": ["data"], "properties": {"data": {"type": "array"}}}
        },
        errors=("permission-denied",),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        ledger = whole_ledger(call.principal.tenant_id)
        return Answer(200, {"data": [one.ledger_entry() for one in ledger]})


class ErasureReplay(ApiView):
    @operation(
        id="memory.replayErasures",
        summary="Run the erasures of a ledger again after a restore (admin)",
        ability="write",
        body=REPLAY,
        matters=always,
        answers={200: _REPLAYED},
        changes=True,
        errors=("bad-input", "unknown-field", "permission-denied"),
        example={
            "erasures": [
                {
                    "id": "0190a3a0-0000-7000-8000-000000000000",
                    "selectorKind": "user",
                    "selectorHmac": "5e" * 32,
                    "keyId": "00112233aabbccdd",
                    "requestedBy": "user:7",
                    "status": "completed",
                    "createdAt": "2026-01-31T09:30:00Z",
                }
            ]
        },
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        replay = replay_erasures(principal=call.principal, entries=call.body["erasures"])
        return Answer(200, replay.wire())
