"""Recall over HTTP.

Policies are read from their sources after the transaction, when the request's connection is free.
"""

from typing import Any

from memory.access import Principal
from memory.actions.recall import Recalled, complete, recall
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.schemas_records import RECALL, RECALL_RESULT, RECALL_RESULTS
from memory.errors import BadInput
from memory.instants import instant
from memory.queries.recall_candidates import Question, Subject
from memory.records.bindings import read_context


def read_question(principal: Principal, body: dict[str, Any]) -> Question:
    """The question of a request. Raises BadInput."""
    asked = [name for name in ("key", "keys", "key_prefix") if name in body]
    if len(asked) != 1:
        raise BadInput.at("/key", "send exactly one of key, keys and key_prefix")
    subject = Subject(**body["subject"]) if "subject" in body else None
    context = read_context(body["context"])
    if subject is None and principal.subject is not None and context.user_id is None:
        subject = Subject("user", principal.subject)
    return Question(
        context=context,
        keys=[body["key"]] if "key" in body else body.get("keys", ()),
        key_prefix=body.get("key_prefix"),
        subject=subject,
        as_of=instant(body["as_of"]) if "as_of" in body else None,
    )


class Recall(ApiView):
    @operation(
        id="memory.recall",
        summary="What may be used right now",
        description=(
            "One key, up to 50, or a prefix. The decision says whether to apply the value, to ask, to check it at its source, or "
            "that nothing is remembered; docs/records.md lists the reasons. Counts as a use; an Idempotency-Key is ignored."
        ),
        ability="read",
        body=RECALL,
        answers={200: {"oneOf": [RECALL_RESULT, RECALL_RESULTS]}},
        ignores_key=True,
        errors=("bad-input", "unknown-field", "permission-denied", "run-reserved"),
        example={"key": "travel.seat", "context": {"user_id": "ann", "trip_id": "PUNE-0304"}},
        tag="Memory records",
    )
    def post(self, call: Call) -> Answer:
        question = read_question(call.principal, call.body)
        is_single = "key" in call.body
        recalled = recall(
            principal=call.principal, question=question, run_id=call.body.get("run_id")
        )
        answer = Answer(200, _body(recalled, is_single=is_single))
        if any(one.source for one in recalled.values()):
            answer.later = lambda: _body(complete(recalled), is_single=is_single)
        return answer


def _body(recalled: dict[str, Recalled], *, is_single: bool) -> dict[str, Any]:
    if is_single:
        (one,) = recalled.values()
        return one.wire()
    return {"results": {key: one.wire() for key, one in recalled.items()}}
