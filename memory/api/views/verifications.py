"""Verifications as jobs over HTTP: asked for, watched, called off. For admins and auditors; the worker does the work."""

from typing import Any

from memory.actions.ask_verification import ask_verification, cancel_verification
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import REPORT, page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, shape
from memory.integrity.states import State
from memory.queries.verification_jobs import (
    VerificationJob,
    verification_job,
    verification_jobs,
)

_TAG = "Integrity"
_COUNT = {"type": "integer", "minimum": 0}
_SEQUENCE = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
_PROGRESS = {
    "type": "object",
    "required": ["done", "total"],
    "properties": {"done": _COUNT, "total": _COUNT},
}
ASK = Shape(
    shape(
        {"runId": ID, "from": _SEQUENCE, "to": _SEQUENCE, "mode": {"enum": ["full", "incremental"]}}
    )
)
CANCEL = Shape(shape({}))
VERIFICATION: dict[str, Any] = {
    "type": "object",
    "required": ["id", "status", "mode", "runs", "entries", "requestedBy", "createdAt"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "status": {"enum": ["queued", "running", "done", "cancelled", "failed"]},
        "mode": {"enum": ["full", "incremental"]},
        "runId": TEXT,
        "from": _COUNT,
        "to": _COUNT,
        "sinceCheckpoint": _COUNT,
        "checkpoint": _COUNT,
        "runs": _PROGRESS,
        "entries": _PROGRESS,
        "state": {"enum": [state.value for state in State]},
        "states": {"type": "object", "additionalProperties": _COUNT},
        "reports": {"type": "array", "items": REPORT},
        "firstBad": {"type": "object"},
        "requestedBy": TEXT,
        "createdAt": INSTANT,
        "startedAt": INSTANT,
        "finishedAt": INSTANT,
    },
}


class Verifications(ApiView):
    @operation(
        id="memory.listVerifications",
        summary="List verifications, the newest first (admin, auditor)",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(VERIFICATION)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listVerifications", {}, call.query["cursor"])
        found = verification_jobs(
            call.principal,
            before=(position[0], position[1]) if position else None,
            limit=limit + 1,
        )

        def cursor_after(job: VerificationJob) -> str:
            return make_cursor(call.principal, "listVerifications", {}, [job.created_at, job.id])

        return Answer(
            200, page(found, limit, render=VerificationJob.wire, next_cursor=cursor_after)
        )

    @operation(
        id="memory.askVerification",
        summary="Ask for a run, a range of it or the whole tenant to be verified by the worker (admin, auditor)",
        description=(
            "Without `runId` every run, and every run that the seals name. `mode: incremental` takes what the last good "
            "verification of the same found whole on the signature of its checkpoint, and recomputes what came since. "
            "`state` speaks for all; `reports` are those that most need to be looked at, `states` counts the runs."
        ),
        ability="read",
        body=ASK,
        answers={202: VERIFICATION},
        changes=True,
        errors=(
            "bad-input",
            "unknown-field",
            "permission-denied",
            "log-not-found",
            "rate-limited",
        ),
        example={"runId": "run-1", "mode": "incremental"},
        tag=_TAG,
    )
    def post(self, call: Call) -> Answer:
        job = ask_verification(
            principal=call.principal,
            run_id=call.body.get("runId"),
            first=call.body.get("from"),
            last=call.body.get("to"),
            incremental=call.body.get("mode") == "incremental",
        )
        return Answer(202, job.wire())


class Verification(ApiView):
    @operation(
        id="memory.getVerification",
        summary="One verification: how far it came, and what it found (admin, auditor)",
        ability="read",
        answers={200: VERIFICATION},
        errors=("permission-denied", "verification-not-found"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        return Answer(200, verification_job(call.principal, call.path["verification_id"]).wire())


class VerificationCancel(ApiView):
    @operation(
        id="memory.cancelVerification",
        summary="Call a verification off (admin, auditor)",
        description="One that is over stays as it is. One that is running ends within a few seconds.",
        ability="read",
        body=CANCEL,
        answers={200: VERIFICATION},
        changes=True,
        errors=("bad-input", "unknown-field", "permission-denied", "verification-not-found"),
        tag=_TAG,
    )
    def post(self, call: Call) -> Answer:
        job = cancel_verification(principal=call.principal, job_id=call.path["verification_id"])
        return Answer(200, job.wire())
