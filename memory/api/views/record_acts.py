"""What people do with what is remembered, over HTTP: correct, confirm, forget; and explain, history, emit."""

from typing import Any

from memory.access import Principal
from memory.actions.confirm_record import confirm_record
from memory.actions.correct import Corrected, correct
from memory.actions.emit_event import emit_event
from memory.actions.forget_record import ForgottenRecord, forget_record
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.schemas_records import (
    CONFIRM,
    CORRECT,
    CORRECT_RECORD,
    CORRECTED,
    EMITTED,
    EVENT,
    EXPLANATION,
    FORGET,
    FORGOTTEN,
    HISTORY,
    PENDING,
    RECORD,
)
from memory.api.views.records import REVEAL, TAG, answer_with, is_masked, pending
from memory.queries.explain import explain
from memory.queries.recall_candidates import Subject
from memory.queries.record_history import record_history
from memory.queries.records import record_by_id
from memory.records.bindings import read_context
from memory.records.correction_target import Correction

_CORRECTION_ERRORS = (
    "bad-input",
    "unknown-field",
    "permission-denied",
    "content-too-large",
    "instance-unnamed",
    "subject-required",
    "policy-not-correctable",
    "invariant-violated",
    "evidence-unresolved",
    "record-changed",
    "legal-hold",
)


def read_evidence(body: dict[str, Any]) -> tuple[str, str] | None:
    given = body.get("evidence")
    return (given["kind"], given["ref"]) if given is not None else None


def read_correction(
    principal: Principal, body: dict[str, Any], *, record_id: str | None, route: str = "fix-value"
) -> Correction:
    """The correction in an admitted body. Raises BadInput."""
    return Correction(
        new_value=body["new_value"],
        context=read_context(body.get("context")),
        key=body.get("key"),
        record_id=record_id,
        subject=Subject(**body["subject"]) if "subject" in body else None,
        broaden=body.get("broaden", False),
        expect=body.get("expect"),
        evidence=read_evidence(body),
        reason=body.get("reason"),
        route=route,
    )


def widens(body: dict[str, Any]) -> bool:
    """Whether it is to hold more widely than before."""
    return bool(body.get("broaden")) or "broaden_to" in body


def corrected_answer(call: Call, corrected: Corrected, *, status: int = 201) -> Answer:
    if corrected.record is None or corrected.receipt is None:
        return pending(str(corrected.pending_id))
    body = {
        "record": corrected.record.wire(),
        "receipt": corrected.receipt.wire(corrected.values),
    }
    return answer_with(call, status, corrected.record, body)


def forgotten_answer(forgotten: ForgottenRecord, body: Any) -> Answer:
    if forgotten.pending_id is not None:
        return pending(forgotten.pending_id)
    return Answer(200, body)


class Correct(ApiView):
    @operation(
        id="memory.correct",
        summary="Correct what is remembered, in the case at hand",
        description=(
            "Binds to the instance: all of the context but its control keys. `broaden` with `context.broaden_to` widens it on a "
            "person's word. `expect`: the id of the record seen. 202: without a person's word it waits for a decision."
        ),
        ability="write",
        body=CORRECT,
        matters=widens,
        answers={201: CORRECTED, 202: PENDING},
        changes=True,
        errors=_CORRECTION_ERRORS,
        example={
            "key": "travel.seat",
            "new_value": "window",
            "context": {"user_id": "ann", "trip_id": "PUNE-0304"},
        },
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        asked = read_correction(call.principal, call.body, record_id=None)
        return corrected_answer(call, correct(principal=call.principal, asked=asked))


class CorrectRecord(ApiView):
    @operation(
        id="memory.correctRecord",
        summary="Correct this record, in the case at hand",
        ability="write",
        body=CORRECT_RECORD,
        matters=widens,
        answers={201: CORRECTED, 202: PENDING},
        changes=True,
        errors=("record-not-found", *_CORRECTION_ERRORS),
        example={"new_value": "window", "context": {"trip_id": "PUNE-0304"}},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        asked = read_correction(call.principal, call.body, record_id=call.path["record_id"])
        return corrected_answer(call, correct(principal=call.principal, asked=asked))


class Confirm(ApiView):
    @operation(
        id="memory.confirmRecord",
        summary="Say that it is right, and perhaps that it holds more widely",
        ability="write",
        body=CONFIRM,
        matters=widens,
        answers={200: RECORD, 202: PENDING},
        changes=True,
        errors=(
            "record-not-found",
            "record-changed",
            "permission-denied",
            "invariant-violated",
            "evidence-unresolved",
        ),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        confirmed = confirm_record(
            principal=call.principal,
            record_id=call.path["record_id"],
            evidence=read_evidence(call.body),
            broaden_to=call.body.get("broaden_to"),
        )
        if confirmed.record is None:
            return pending(str(confirmed.pending_id))
        return answer_with(call, 200, confirmed.record, confirmed.record.wire())


class Forget(ApiView):
    @operation(
        id="memory.forgetRecord",
        summary="Forget this, and all that was derived from it",
        description="At once and for good: what stays is a tombstone. Asked again, it answers with the first receipt.",
        ability="write",
        body=FORGET,
        answers={200: FORGOTTEN, 202: PENDING},
        changes=True,
        errors=("record-not-found", "permission-denied", "evidence-unresolved"),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        forgotten = forget_record(
            principal=call.principal,
            record_id=call.path["record_id"],
            reason=call.body.get("reason"),
            evidence=read_evidence(call.body),
        )
        return forgotten_answer(forgotten, forgotten.wire())


class Explain(ApiView):
    @operation(
        id="memory.explainRecord",
        summary="Why it is remembered, and what becomes of it",
        ability="read",
        query=(parameters.moment("as_of"), REVEAL),
        answers={200: EXPLANATION},
        errors=("record-not-found", "permission-denied", "bad-input"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        explanation = explain(call.principal, call.path["record_id"], as_of=call.query["as_of"])
        return Answer(200, explanation.wire(masked=is_masked(call, [explanation.record])))


class History(ApiView):
    @operation(
        id="memory.recordHistory",
        summary="Who changed it, when, why and where, oldest first",
        ability="read",
        query=(parameters.moment("as_of"), REVEAL),
        answers={200: HISTORY},
        errors=("record-not-found", "permission-denied", "bad-input"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        acts = record_history(call.principal, call.path["record_id"], as_of=call.query["as_of"])
        masked = is_masked(call, [record_by_id(call.principal, call.path["record_id"])])
        return Answer(200, {"data": [one.wire(masked=masked) for one in acts]})


class Events(ApiView):
    @operation(
        id="memory.emitEvent",
        summary="Say that something happened: what listens for it expires",
        description="`type`, and beside it the bindings of the case, such as `project_id`. An agent's event must name a case, "
        "and reaches only what is of it.",
        ability="emit",
        body=EVENT,
        answers={200: EMITTED},
        changes=True,
        errors=("bad-input", "permission-denied", "invariant-violated"),
        example={"type": "project_closed", "project_id": "trips"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        bindings = {name: value for name, value in call.body.items() if name != "type"}
        expired = emit_event(principal=call.principal, type=call.body["type"], bindings=bindings)
        return Answer(200, {"expired": expired})
