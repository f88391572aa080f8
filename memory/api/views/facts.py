"""Facts over HTTP: list, write, read, supersede, verify, delete, history, refresh."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from memory.access import own_scope
from memory.actions.delete_fact import delete_fact
from memory.actions.refresh_facts import refresh_fact
from memory.actions.supersede_fact import supersede_fact
from memory.actions.verify_fact import verify_fact
from memory.actions.write_fact import write_fact
from memory.api import parameters
from memory.api.json_text import dumps
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_facts import (
    FACT,
    FACT_REVISIONS,
    PARTIAL_SCOPE,
    SUPERSEDE_FACT,
    VERIFY_FACT,
    WRITE_FACT,
    change_of,
    draft_of,
)
from memory.api.schemas_log import page_of
from memory.api.schemas_records import PENDING
from memory.api.shapes import Shape, shape
from memory.errors import BadInput, FactNotFound, ScopeMismatch
from memory.fact_shape import FactView
from memory.instants import instant_text
from memory.queries.facts import (
    FactFilters,
    current_fact,
    fact_as_of,
    fact_revisions,
    fact_version,
    list_facts,
)
from memory.refresh.on_read import due_on_read, refreshed_on_read
from memory.trust.facts import Waiting

_TAG = "Facts"
_EXPECT_VERSION = parameters.integer(
    "expectVersion", "Only if the current revision is still this one.", least=1, most=2**31 - 1
)
_WRITE_EXAMPLE = {
    "type": "seat-preference",
    "scope": {"projectId": "trips"},
    "content": {"seat": "window", "why": "said so when booking"},
    "subjects": [{"kind": "external", "id": "passenger-17"}],
}
_WRITE_ERRORS = (
    "bad-input",
    "unknown-field",
    "permission-denied",
    "scope-mismatch",
    "content-too-large",
    "content-hash-mismatch",
    "content-schema-violated",
    "invariant-violated",
)
_CHANGE_ERRORS = (
    "bad-input",
    "unknown-field",
    "permission-denied",
    "fact-not-found",
    "fact-changed",
)


def refreshed_first(handle: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wraps an operation that reads: what it found stale and due is looked after once its transaction is done."""

    @functools.wraps(handle)
    def read(self: Any, request: HttpRequest, **path: str) -> HttpResponse:
        response = handle(self, request, **path)
        again: Callable[[], Any] | None = request.__dict__.pop("read_after_refresh", None)
        if again is not None:
            response.content = dumps(again()).encode()
        return response

    return read


def _leave_due(
    call: Call, facts: Sequence[FactView], body: Callable[[list[FactView]], Any]
) -> None:
    """Note what is due, and how the answer is made of the facts once they were looked after."""
    if due_on_read(facts):
        principal = call.principal
        again = lambda: body(refreshed_on_read(principal, facts))  # noqa: E731  # a closure to run later
        call.request.__dict__["read_after_refresh"] = again


def _wire_of_one(facts: list[FactView]) -> Any:
    if not facts:
        raise FactNotFound
    return facts[0].wire()


def _answer(status: int, fact: FactView | Waiting) -> Answer:
    if isinstance(fact, Waiting):
        body = {"review": "pending", "id": fact.id}
        return Answer(202, body, item_ref=f"fact:{fact.id}")
    return Answer(status, fact.wire(), item_ref=f"fact:{fact.id}", scopes=[fact.scope])


class Facts(ApiView):
    @refreshed_first
    @operation(
        id="memory.listFacts",
        summary="List facts",
        description="The current revision of each fact that the caller may read, by first write, newest first.",
        ability="read",
        query=(
            parameters.LIMIT,
            parameters.CURSOR,
            parameters.text("type"),
            parameters.json_object(
                "scope", PARTIAL_SCOPE, "A partial scope as JSON: each key must be equal."
            ),
            parameters.choice("scopeKind", ("tenant", "org", "project")),
            parameters.text("scopeId"),
            parameters.boolean("inherit", "Accepted; changes nothing."),
            parameters.moment("asOf", "The revisions that were current then."),
        ),
        answers={200: page_of(FACT)},
        errors=("bad-input", "unknown-field", "permission-denied", "scope-mismatch"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        query = call.query
        filters = _filters(call)
        bound = {
            name: query[name]
            for name in ("type", "scope", "scopeKind", "scopeId", "inherit", "asOf")
        }
        position = read_cursor(call.principal, "listFacts", bound, query["cursor"])
        facts = list_facts(
            call.principal,
            filters,
            after=(position[0], position[1]) if position else None,
            limit=query["limit"] + 1,
        )

        def cursor_after(fact: FactView) -> str:
            return make_cursor(
                call.principal, "listFacts", bound, [instant_text(fact.created_at), fact.id]
            )

        body = page(facts, query["limit"], render=FactView.wire, next_cursor=cursor_after)
        if query["asOf"] is None:
            _leave_due(
                call,
                facts[: query["limit"]],
                lambda now: {**body, "data": [fact.wire() for fact in now]},
            )
        return Answer(200, body)

    @operation(
        id="memory.writeFact",
        summary="Write a fact",
        description="Version, times, hash, size, trust and attribution are the server's. A taken id answers 409. "
        "202: an agent's, and waiting for a person's decision.",
        ability="write",
        body=WRITE_FACT,
        answers={201: FACT, 202: PENDING},
        changes=True,
        errors=(*_WRITE_ERRORS, "id-taken"),
        example=_WRITE_EXAMPLE,
        tag=_TAG,
    )
    def post(self, call: Call) -> Answer:
        return _answer(201, write_fact(principal=call.principal, draft=draft_of(call.body)))


def _filters(call: Call) -> FactFilters:
    query = call.query
    kind, container = query["scopeKind"], query["scopeId"]
    if kind is None and container is not None:
        raise BadInput.at("scopeKind", "is required with scopeId")
    if kind in ("org", "project") and container is None:
        raise BadInput.at("scopeId", f"is required with scopeKind {kind}")
    if kind == "tenant" and container not in (None, call.principal.tenant_slug):
        raise ScopeMismatch(field="scopeId")
    scope = own_scope(call.principal, query["scope"])
    return FactFilters(
        type=query["type"],
        scope=scope,
        container_kind=None if kind == "tenant" else kind,
        container_id=None if kind == "tenant" else container,
        as_of=query["asOf"],
    )


class Fact(ApiView):
    @refreshed_first
    @operation(
        id="memory.getFact",
        summary="Read a fact",
        description="Its current revision; `version` or `asOf` reads an earlier one, of a deleted fact too.",
        ability="read",
        query=(
            parameters.integer("version", "One revision.", least=1, most=2**31 - 1),
            parameters.moment("asOf", "The revision that was current then."),
        ),
        answers={200: FACT},
        errors=("bad-input", "unknown-field", "permission-denied", "fact-not-found"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        fact = _read(call)
        if call.query["version"] is None and call.query["asOf"] is None:
            _leave_due(call, [fact], _wire_of_one)
        return Answer(200, fact.wire())

    @operation(
        id="memory.deleteFact",
        summary="Delete a fact",
        description="Closes the current revision: reads no longer see the fact, its history does until the sweep. "
        "202: an agent's, of what a person said or checked; it waits for a person's decision and the fact is as it was.",
        ability="write",
        query=(_EXPECT_VERSION,),
        answers={200: FACT, 202: PENDING},
        errors=(*_CHANGE_ERRORS, "legal-hold", "retention-violation"),
        tag=_TAG,
    )
    def delete(self, call: Call) -> Answer:
        fact = delete_fact(
            principal=call.principal,
            fact_id=call.path["fact_id"],
            expect_version=call.query["expectVersion"],
        )
        if isinstance(fact, Waiting):
            return _answer(202, fact)
        return Answer(200, fact.wire())


def _read(call: Call) -> FactView:
    fact_id, version, as_of = call.path["fact_id"], call.query["version"], call.query["asOf"]
    if version is not None and as_of is not None:
        raise BadInput.at("asOf", "can't be given together with version")
    if version is not None:
        return fact_version(call.principal, fact_id, version)
    if as_of is not None:
        return fact_as_of(call.principal, fact_id, as_of)
    return current_fact(call.principal, fact_id)


class FactSupersede(ApiView):
    @operation(
        id="memory.supersedeFact",
        summary="Change a fact's content",
        description="The next revision. What is left out keeps its value, but for causes, which are those of this change. "
        "202: an agent's, and waiting for a person's decision; the fact is as it was.",
        ability="write",
        body=SUPERSEDE_FACT,
        answers={200: FACT, 202: PENDING},
        changes=True,
        errors=(*_CHANGE_ERRORS, *_WRITE_ERRORS, "legal-hold", "retention-violation"),
        example={"content": {"seat": "aisle"}, "expectVersion": 1},
        tag=_TAG,
    )
    def post(self, call: Call) -> Answer:
        fact = supersede_fact(
            principal=call.principal,
            fact_id=call.path["fact_id"],
            change=change_of(call.body),
            expect_version=call.body.get("expectVersion"),
        )
        return _answer(200, fact)


class FactVerify(ApiView):
    @operation(
        id="memory.verifyFact",
        summary="Mark a fact verified",
        description="A person, an app key or an admin key checked it. The next revision, with the same content.",
        ability="write",
        body=VERIFY_FACT,
        answers={200: FACT},
        changes=True,
        errors=_CHANGE_ERRORS,
        tag=_TAG,
    )
    def post(self, call: Call) -> Answer:
        fact = verify_fact(
            principal=call.principal,
            fact_id=call.path["fact_id"],
            expect_version=call.body.get("expectVersion"),
        )
        return _answer(200, fact)


class FactRevisions(ApiView):
    @operation(
        id="memory.listFactRevisions",
        summary="List a fact's revisions",
        description="Newest first, superseded and deleted ones included; the newest 1000 of a fact that has more. Those who "
        "govern also read a fact past its expiry while a legal hold keeps it.",
        ability="read",
        answers={200: FACT_REVISIONS},
        errors=("permission-denied", "fact-not-found"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        revisions = fact_revisions(call.principal, call.path["fact_id"], if_kept=True)
        body: dict[str, Any] = {"data": [revision.wire() for revision in revisions]}
        return Answer(200, body)


class FactRefresh(ApiView):
    @operation(
        id="memory.refreshFact",
        summary="Refresh a cached view now",
        description="Runs the refresh handler of the fact's source. Changed content is the next revision.",
        ability="write",
        body=Shape(shape({})),
        answers={200: FACT},
        changes=True,
        outside=True,
        about="fact:{fact_id}",
        errors=(
            "permission-denied",
            "fact-not-found",
            "refresh-handler-missing",
            "refresh-failed",
            "legal-hold",
        ),
        tag=_TAG,
    )
    def post(self, call: Call) -> Answer:
        fact = refresh_fact(principal=call.principal, fact_id=call.path["fact_id"])
        return Answer(200, fact.wire(), scopes=[fact.scope])
