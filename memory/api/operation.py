"""One API operation: what it takes, who may call it, and the one transaction it runs in.

`@operation(...)` on a view's method makes of `def post(self, call) -> Answer` a handler that reads the body, opens a transaction,
finds the caller (which sets the tenant), checks the shape, replays or keeps the answer of a retried request, and renders. A
domain error rolls everything back. The same declaration is what the API description shows.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from memory import admission
from memory.access import Ability, Principal, Scope
from memory.api import idempotency
from memory.api.authentication import authenticate, check_is_named, check_is_proved
from memory.api.body import read_body
from memory.api.errors import refused
from memory.api.json_text import dumps
from memory.api.large_bodies import in_turn
from memory.api.metrics import observe
from memory.api.openapi import KEY_IS_IGNORED, KEY_IS_KEPT, openapi_answer, openapi_parameter
from memory.api.parameters import Parameter, read_query
from memory.api.shapes import Shape, shape
from memory.api.transactions import in_transaction
from memory.errors import (
    BadInput,
    DomainError,
    LegalHoldActive,
    MethodNotAllowed,
)
from memory.holds import note_refusal
from memory.ids import new_id
from memory.quotas import count_write
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.request")
T = TypeVar("T")
NO_BODY = Shape(shape({}))
CALLER = "kindmem_caller"
"""Where a request keeps who its caller was found to be, for its line in the log."""


@dataclass(slots=True)
class Answer:
    """A status and a body. `item_ref` names what the body holds (`fact:<id>`), so that a kept copy goes when it goes;
    `scopes` are those that a replay checks the caller's grants on; `kept`: the action kept the answer itself.
    `later` makes the body that is sent, once the transaction is done, where that takes waiting for somebody else.
    `keeps` makes the text that is kept, where that is another than the body's; None: too large to be kept."""

    status: int
    body: Any
    item_ref: str | None = None
    scopes: Sequence[Scope] = ()
    kept: bool = False
    later: Callable[[], Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    keeps: Callable[[], str | None] | None = None


@dataclass(slots=True)
class Call:
    """One request, read and checked. `principal` is set within the transaction."""

    request: HttpRequest
    path: dict[str, str]
    query: dict[str, Any]
    body: Any
    principal: Principal
    idempotency_key: str | None
    digest: bytes | None
    request_id: str

    def keep_parameters(self, answer: Answer, text: str) -> dict[str, Any] | None:
        """For an action that keeps its answer in its own statement; None without an Idempotency-Key."""
        if self.idempotency_key is None or self.digest is None:
            return None
        return idempotency.keep_parameters(
            self.principal,
            self.idempotency_key,
            self.digest,
            status=answer.status,
            answer=text,
            item_ref=answer.item_ref,
            scopes=answer.scopes,
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """The declaration of one route and method. `outside`: the handler opens its own transactions (`call_in_transaction`).
    `matters`: of which bodies a signed-in person must have proved lately who they are. `roles`: who may call it, also to have
    a kept answer. `about`: what an answer that is made outside holds, as `fact:{fact_id}`."""

    id: str
    ability: Ability | None
    body: Shape
    query: dict[str, Parameter]
    changes: bool
    ignores_key: bool
    max_bytes: int
    outside: bool
    matters: Callable[[Any], bool] | None
    roles: Sequence[str]
    about: str | None


class ApiView(APIView):
    """A route of the binding API. Subclasses give methods decorated with `@operation`."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        started = time.perf_counter()
        method = (request.method or "").lower()
        self.headers = {}
        code: str | None = None
        try:
            handler = getattr(self, method, None) if method in self.http_method_names else None
            if handler is None or not hasattr(handler, "operation"):
                raise MethodNotAllowed(allowed=self.allowed_methods)
            response: HttpResponse = handler(request, **kwargs)
        except Exception as error:  # noqa: BLE001, RUF100  # the edge: whatever happens becomes one clear answer
            code, response = refused(error, request)
        response["Cache-Control"] = "no-store"
        response["X-Content-Type-Options"] = "nosniff"
        route = getattr(request.resolver_match, "route", "") if request.resolver_match else ""
        seconds = time.perf_counter() - started
        observe(request.method or "", route, response.status_code, seconds)
        log.info(
            "request",
            method=request.method,
            route=route,
            status=response.status_code,
            code=code,
            caller=getattr(request, CALLER, None),
            ms=round(seconds * 1000, 1),
        )
        return response

    @property
    def allowed_methods(self) -> list[str]:
        return [
            name.upper()
            for name in self.http_method_names
            if hasattr(getattr(self, name, None), "operation")
        ]


def operation(
    *,
    id: str,
    summary: str,
    answers: Mapping[int, Any],
    description: str = "",
    ability: Ability | None = None,
    body: Shape | None = None,
    query: Sequence[Parameter] = (),
    changes: bool = False,
    ignores_key: bool = False,
    max_bytes: int | None = None,
    outside: bool = False,
    matters: Callable[[Any], bool] | None = None,
    roles: Sequence[str] = (),
    about: str | None = None,
    media: str = "application/json",
    errors: Sequence[str] = (),
    example: Any = None,
    tag: str,
) -> Callable[[Callable[[Any, Call], Answer]], Callable[..., HttpResponse]]:
    """Declare a handler. `changes`: it takes an Idempotency-Key. `answers`: status → JSON Schema of the body.

    `matters`: of which bodies; then a browser session proves anew who it is, as on the page.

    `media`: the type of those bodies, where it is another.
    """
    declared = Operation(
        id=id,
        ability=ability,
        body=body or NO_BODY,
        query={parameter.name: parameter for parameter in query},
        changes=changes,
        ignores_key=ignores_key,
        max_bytes=max_bytes or settings.KINDMEM_BODY_MAX_BYTES,
        outside=outside,
        matters=matters,
        roles=roles,
        about=about,
    )

    def decorate(handler: Callable[[Any, Call], Answer]) -> Callable[..., HttpResponse]:
        @functools.wraps(handler)
        def handle(self: Any, request: HttpRequest, **path: str) -> HttpResponse:
            return _run(declared, functools.partial(handler, self), request, path)

        handle.operation = declared  # type: ignore[attr-defined]  # read by dispatch and the completeness tests
        del (
            handle.__wrapped__
        )  # the description must see (self, request), not the handler's own signature
        return extend_schema(
            operation_id=id,
            summary=summary,
            description=description,
            tags=[tag],
            parameters=[openapi_parameter(parameter) for parameter in query]
            + ([KEY_IS_KEPT] if changes else [KEY_IS_IGNORED] if ignores_key else []),
            request={"application/json": body.schema} if body else None,
            responses={(code, media): openapi_answer(one) for code, one in answers.items()},
            extensions={
                "x-error-codes": sorted({*errors, *_refusals(declared)}),
                **({"x-example": example} if example is not None else {}),
                **({"x-ability": ability} if ability else {}),
            },
        )(handle)

    return decorate


def _refusals(declared: Operation) -> set[str]:
    """The codes of what is checked here, for every operation that declares it."""
    codes = {"bad-input", "unknown-field"}
    if declared.ability is not None:
        codes.add("permission-denied")
    if declared.ability == "write":
        codes.add("rate-limited")
    if declared.body is not NO_BODY:
        codes |= {"content-too-large", "unsupported-media-type"}
    if declared.matters is not None:
        codes.add("proof-wanted")
    if declared.changes:
        codes |= {
            "idempotency-key-body-mismatch",
            "idempotency-key-in-flight",
            "idempotency-key-replay-withheld",
        }
    return codes


def _run(
    declared: Operation,
    handler: Callable[[Call], Answer],
    request: HttpRequest,
    path: dict[str, str],
) -> HttpResponse:
    check_is_named(request)  # before its body is waited for
    raw = read_body(
        request, max_bytes=declared.max_bytes, is_needed=bool(declared.body.schema["required"])
    )
    key_header = request.META.get("HTTP_IDEMPOTENCY_KEY") if declared.changes else None
    key = idempotency.read_key(key_header)
    begun: list[Principal] = []

    def arrive() -> tuple[Call, HttpResponse | None]:
        """The request with its caller, and the answer that is kept for its key. In a transaction."""
        principal = authenticate(request, idempotency_key=key)
        begun.append(principal)
        setattr(request, CALLER, principal.writer)
        call = _checked_call(declared, request, path, raw, principal, key)
        if call.digest is None or key is None:
            return call, None
        kept = idempotency.kept_answer(principal, key, call.digest, ability=declared.ability)
        if kept is None:
            return call, None
        return call, _json(kept.status, kept.text, {"Idempotency-Replayed": "true"})

    def unit() -> tuple[HttpResponse, Callable[[], Any] | None]:
        call, replayed = arrive()
        if replayed is not None:
            return replayed, None
        answer = handler(call)
        if declared.ability == "write" and call.principal.quota is not None:
            count_write(call.principal, body=call.body, size_bytes=len(raw or b""))
        text = dumps(answer.body)
        if not answer.kept:
            parameters = call.keep_parameters(answer, text)
            if parameters is not None:
                idempotency.keep(parameters)
        return _json(answer.status, text, answer.headers), answer.later

    try:
        with in_turn(len(raw or b"")):
            if declared.outside:
                return _run_outside(declared, handler, arrive, begun)
            response, later = in_transaction(unit, has_begun=lambda: bool(begun))
    except LegalHoldActive as error:
        # After the rollback, so that the refusal stays.
        if begun:
            with tenant_context(begun[-1].tenant_id):
                note_refusal(begun[-1], declared.id, error.ids)
        raise
    if later is not None:
        response.content = dumps(later()).encode()
    return response


def _run_outside(
    declared: Operation,
    handler: Callable[[Call], Answer],
    arrive: Callable[[], tuple[Call, HttpResponse | None]],
    begun: Sequence[Principal],
) -> HttpResponse:
    """For a handler that opens its own transactions: the caller is found, and the key reserved, in one before them."""
    new_reservation = new_id()

    def before() -> tuple[Call, HttpResponse | None, UUID | None]:
        call, replayed = arrive()
        key = call.idempotency_key
        if replayed is not None or key is None or call.digest is None:
            return call, replayed, None
        about = None if declared.about is None else declared.about.format(**call.path)
        idempotency.reserve(call.principal, new_reservation, key, call.digest, item_ref=about)
        return call, None, new_reservation

    try:
        call, replayed, reservation = in_transaction(before)
    except (DatabaseError, InterfaceError):
        # Where only the word of its commit was lost, nobody would ever end it.
        if begun:
            idempotency.let_go(begun[-1], new_reservation)
        raise
    if replayed is not None:
        return replayed
    with idempotency.freed_when_refused(call.principal, reservation):
        answer = handler(call)
    text = dumps(answer.body)
    if reservation is not None:
        keeps = text if answer.keeps is None else answer.keeps()
        idempotency.keep_reserved(
            call.principal, reservation, status=answer.status, answer=keeps, scopes=answer.scopes
        )
    return _json(answer.status, text, answer.headers)


def _checked_call(
    declared: Operation,
    request: HttpRequest,
    path: dict[str, str],
    raw: bytes | None,
    principal: Principal,
    key: str | None,
) -> Call:
    if declared.ability is not None:
        principal.needs(declared.ability)
    if declared.roles:
        principal.needs_role(*declared.roles)
    for name, value in path.items():
        if not 1 <= len(value) <= admission.ID_MAX or "\x00" in value:
            raise BadInput.at(name, f"must have 1 to {admission.ID_MAX} characters, none U+0000")
    query = read_query(request.GET, declared.query)
    body: Any = None
    if raw is not None:
        body = admission.admit(raw, max_bytes=declared.max_bytes)
        declared.body.check(body)
    if declared.matters is not None and declared.matters(body):
        check_is_proved(request, principal)
    digest = (
        idempotency.digest_of(request.method or "", request.get_full_path(), body)
        if key is not None
        else None
    )
    return Call(
        request=request,
        path=path,
        query=query,
        body=body,
        principal=principal,
        idempotency_key=key,
        digest=digest,
        request_id=getattr(request, "request_id", ""),
    )


def _json(status: int, text: str, headers: Mapping[str, str]) -> HttpResponse:
    return HttpResponse(text, status=status, content_type="application/json", headers=headers)


__all__ = ["Answer", "ApiView", "Call", "DomainError", "Operation", "operation"]
