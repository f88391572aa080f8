"""Retention over HTTP: the tenant's default, what a change would do, why one fact is kept, what sweeps did. For admins."""

from typing import Any
from uuid import UUID

from memory.actions.set_retention import RetentionSettings, change_retention, retention_settings
from memory.actions.sweep_retention import sweep_retention
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, always, shape
from memory.errors import NotFound
from memory.queries.sweeps import Destroyed, PastSweep, evidence_of, find_sweep, past_sweeps
from memory.retention import MOST_DAYS, retention_basis, simulate
from memory.type_policy import type_policy

TAG = "Retention"
_DAYS = {"type": "integer", "minimum": 1, "maximum": MOST_DAYS}
_COUNT = {"type": "integer", "minimum": 0}
_OR_NONE = {**_DAYS, "type": ["integer", "null"]}
_WINDOWS: dict[str, Any] = {"keepDays": _DAYS, "deleteAfterDays": _DAYS}
_SET_WINDOWS: dict[str, Any] = {"keepDays": _OR_NONE, "deleteAfterDays": _OR_NONE}
_OTHERS: dict[str, Any] = {
    "graceDays": {"type": "integer", "minimum": 0, "maximum": MOST_DAYS},
    "sweepIsOff": {"type": "boolean"},
}
SET_RETENTION = Shape(shape({**_SET_WINDOWS, **_OTHERS}))
SIMULATE = Shape(shape({**_SET_WINDOWS, "type": ID}))
RETENTION = {
    "type": "object",
    "properties": {**_WINDOWS, **_OTHERS},
    "required": ["graceDays", "sweepIsOff"],
}
SIMULATION = {
    "type": "object",
    "required": ["facts", "changed", "due", "dueNow", "held"],
    "properties": dict.fromkeys(("facts", "changed", "due", "dueNow", "held"), _COUNT),
}
BASIS = {
    "type": "object",
    "required": ["factId", "rule", "sentence"],
    "properties": {
        "factId": ID,
        "rule": TEXT,
        "until": INSTANT,
        "readUntil": INSTANT,
        "keptUntil": INSTANT,
        "unverifiedUntil": INSTANT,
        "holds": {"type": "array", "items": ID},
        "sentence": TEXT,
    },
}
SWEEP = {
    "type": "object",
    "required": ["id", "dryRun", "status", "startedAt", "due", "destroyed", "held", "counts"],
    "properties": {
        "id": ID,
        "dryRun": {"type": "boolean"},
        "status": TEXT,
        "startedBy": TEXT,
        "startedAt": INSTANT,
        "finishedAt": INSTANT,
        "batches": _COUNT,
        "due": _COUNT,
        "destroyed": _COUNT,
        "held": _COUNT,
        "erasing": _COUNT,
        "counts": {"type": "object", "additionalProperties": _COUNT},
        "types": {"type": "object", "additionalProperties": _COUNT},
    },
}


DESTROYED = {
    "type": "object",
    "required": ["factId", "type", "rule", "firstWrittenAt", "revisions", "destroyedAt"],
    "properties": {
        "factId": ID,
        "type": TEXT,
        "rule": TEXT,
        "firstWrittenAt": INSTANT,
        "dueAt": INSTANT,
        "revisions": _COUNT,
        "contentDigest": TEXT,
        "destroyedAt": INSTANT,
    },
}


class Retention(ApiView):
    @operation(
        id="memory.getRetention",
        summary="How long the tenant keeps facts that say nothing of their own (admin)",
        ability="read",
        answers={200: RETENTION},
        errors=("permission-denied",),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        return Answer(200, retention_settings(call.principal.tenant_id).wire())

    @operation(
        id="memory.setRetention",
        summary="Set the tenant's default retention (admin)",
        description="What is left out stays as it is; a window that is null is taken away. Facts that are there are set anew. "
        "Simulate it first.",
        ability="write",
        body=SET_RETENTION,
        matters=always,
        answers={200: RETENTION},
        errors=("bad-input", "unknown-field", "permission-denied"),
        example={"keepDays": 30, "deleteAfterDays": 365},
        tag=TAG,
    )
    def put(self, call: Call) -> Answer:
        return Answer(200, change_retention(principal=call.principal, said=call.body).wire())


class RetentionSimulation(ApiView):
    @operation(
        id="memory.simulateRetention",
        summary="What a policy would do if it applied now (admin)",
        description="Of the tenant's default, or of one `type`; a window that is left out is as it stands, one that is null is "
        "none. Nothing changes.",
        ability="read",
        body=SIMULATE,
        answers={200: SIMULATION},
        errors=("bad-input", "unknown-field", "permission-denied"),
        example={"type": "preference", "deleteAfterDays": 365},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        tenant_id, type = call.principal.tenant_id, call.body.get("type")
        after = _as_it_stands(tenant_id, type).with_what_is_said(call.body)
        after.check()
        found = simulate(
            tenant_id,
            type=type,
            keep_days=after.keep_days,
            delete_after_days=after.delete_after_days,
        )
        return Answer(
            200,
            {
                "facts": found.facts,
                "changed": found.changed,
                "due": found.due,
                "dueNow": found.due_now,
                "held": found.held,
            },
        )


def _as_it_stands(tenant_id: UUID, type: str | None) -> RetentionSettings:
    """The rule of a type, or the tenant's default."""
    if type is None:
        return retention_settings(tenant_id)
    policy = type_policy(tenant_id, type)
    return RetentionSettings(policy.keep_days, policy.delete_after_days)


class FactRetention(ApiView):
    @operation(
        id="memory.explainRetention",
        summary="Why a fact is kept, and until when",
        ability="read",
        answers={200: BASIS},
        errors=("fact-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        return Answer(200, retention_basis(call.principal, call.path["fact_id"]).wire())


def _sweep(call: Call) -> PastSweep:
    """Raises NotFound."""
    call.principal.needs_role("admin", "owner", "auditor")
    try:
        wanted = UUID(call.path["sweep_id"])
    except ValueError:
        raise NotFound from None
    return find_sweep(call.principal.tenant_id, wanted)


class Sweep(ApiView):
    @operation(
        id="memory.getSweep",
        summary="What one sweep did (admin)",
        ability="read",
        answers={200: SWEEP},
        errors=("not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        return Answer(200, _sweep(call).wire())


class SweepEvidence(ApiView):
    @operation(
        id="memory.listSweepEvidence",
        summary="The evidence of what one sweep destroyed, a row a fact (admin)",
        description="By the facts' ids. The digest is keyed: it proves a copy that somebody kept, and gives nothing away.",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(DESTROYED)},
        errors=("bad-input", "unknown-field", "not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        sweep, limit = _sweep(call), call.query["limit"]
        filters = {"sweep": str(sweep.id)}
        position = read_cursor(call.principal, "sweepEvidence", filters, call.query["cursor"])
        found = evidence_of(
            call.principal.tenant_id,
            sweep.id,
            after=position[0] if position else None,
            limit=limit + 1,
        )

        def cursor_after(one: Destroyed) -> str:
            return make_cursor(call.principal, "sweepEvidence", filters, [one.fact_id])

        return Answer(200, page(found, limit, render=Destroyed.wire, next_cursor=cursor_after))


class Sweeps(ApiView):
    @operation(
        id="memory.listSweeps",
        summary="What sweeps did (admin)",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(SWEEP)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listSweeps", {}, call.query["cursor"])
        found = past_sweeps(
            call.principal.tenant_id,
            after=(position[0], position[1]) if position else None,
            limit=limit + 1,
        )

        def cursor_after(sweep: PastSweep) -> str:
            return make_cursor(call.principal, "listSweeps", {}, [sweep.started_at, sweep.id])

        return Answer(200, page(found, limit, render=PastSweep.wire, next_cursor=cursor_after))

    @operation(
        id="memory.dryRunSweep",
        summary="Ask what a sweep would destroy now, and destroy nothing (admin)",
        description="The same question as a sweep's, with the same counts. Sweeps themselves are the worker's, once an hour.",
        ability="write",
        answers={201: SWEEP},
        changes=True,
        errors=("permission-denied",),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        result = sweep_retention(principal=call.principal, dry_run=True)
        return Answer(201, find_sweep(call.principal.tenant_id, result.id).wire())
