"""Recall over HTTP.

Policies are read from their sources after the transaction, when the request's connection is free.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse

from memory.access import Principal
from memory.actions.recall import Recalled, complete, recall
from memory.api.json_text import dumps
from memory.api.operation import Answer, ApiView, Call, operation
from memory.instants import instant
from memory.api.schemas_records import RECALL, RECALL_RESULT, RECALL_RESULTS
from memory.errors import BadInput
from memory.queries.recall_candidates import Question, Subject
from memory.records.bindings import read_context


def read_question(principal: Principal, body: dict[str, Any]) -> Question:
    """The question of a request. Raises BadInput."""
    asked = [name for name in ("key", "keys", "key_prefix") if name in body]
    if len(asked) != 1:
        raise BadInput.at("/key", "send exactly one of key, keys and key_prefix")
    subject = Subject(**body["subject"]) if "subject" in body else None
    if subject is None and principal.subject is not None:
        subject = Subject("user", principal.subject)
    try:
        as_of = instant(body["as_of"]) if "as_of" in body else None
    except ValueError as error:
        raise BadInput.at("/as_of", str(error)) from None
    return Question(
        context=read_context(body["context"]),
        keys=[body["key"]] if "key" in body else body.get("keys", ()),
        key_prefix=body.get("key_prefix"),
        subject=subject,
        as_of=as_of,
    )


class Recall(ApiView):
    recalled: dict[str, Recalled] | None = None
    is_single = False

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
        self.is_single = "key" in call.body
        self.recalled = recall(
            principal=call.principal, question=question, run_id=call.body.get("run_id")
        )
        return Answer(200, self._body(self.recalled))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        if self.recalled is not None and any(one.source for one in self.recalled.values()):
            response.content = dumps(self._body(complete(self.recalled))).encode()
        return response

    def _body(self, recalled: dict[str, Recalled]) -> dict[str, Any]:
        if self.is_single:
            (one,) = recalled.values()
            return one.wire()
        return {"results": {key: one.wire() for key, one in recalled.items()}}
