"""The one place where errors become answers: `{"error": {code, message, details, requestId}}`, and code → status."""

import traceback
from pathlib import Path
from typing import Any

import structlog
from django.db import DatabaseError, DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from memory import admission
from memory.api.json_text import dumps
from memory.errors import (
    BadInput,
    BodyTooLarge,
    DomainError,
    IdempotencyInFlight,
    InternalError,
    MethodNotAllowed,
    RateLimited,
    RunDamaged,
    Unavailable,
)

log = structlog.get_logger("kindmem.api")

STATUS: dict[str, int] = {
    "bad-input": 400,
    "unknown-field": 400,
    "auth-missing": 401,
    "auth-expired": 401,
    "auth-revoked": 401,
    "permission-denied": 403,
    "proof-wanted": 403,
    "scope-mismatch": 403,
    "run-reserved": 403,
    "not-found": 404,
    "fact-not-found": 404,
    "log-not-found": 404,
    "type-not-found": 404,
    "key-not-found": 404,
    "record-not-found": 404,
    "route-not-found": 404,
    "receipt-not-found": 404,
    "policy-source-not-found": 404,
    "hold-not-found": 404,
    "member-not-found": 404,
    "review-not-found": 404,
    "quarantine-not-found": 404,
    "quarantine-closed": 409,
    "nothing-to-quarantine": 422,
    "webhook-not-found": 404,
    "delivery-not-found": 404,
    "webhook-disabled": 409,
    "erasure-not-found": 404,
    "method-not-allowed": 405,
    "record-changed": 409,
    "already-disputed": 409,
    "id-reused": 409,
    "forgotten": 409,
    "retired": 409,
    "inference-refused": 409,
    "route-exists": 409,
    "policy-source-exists": 409,
    "undo-closed": 409,
    "fact-changed": 409,
    "id-taken": 409,
    "legal-hold": 409,
    "retention-violation": 409,
    "release-refused": 409,
    "sweep-off": 409,
    "sweep-running": 409,
    "sweep-refused": 409,
    "last-owner": 409,
    "member-exists": 409,
    "run-differs": 409,
    "seal-refused": 409,
    "run-not-sealed": 409,
    "export-too-large": 413,
    "log-damaged": 409,
    "run-damaged": 409,
    "run-closed": 409,
    "checkpoint-not-found": 404,
    "verification-not-found": 404,
    "erasure-in-progress": 409,
    "erasure-not-held-up": 409,
    "ledger-unwritable": 503,
    "idempotency-key-body-mismatch": 409,
    "idempotency-key-in-flight": 409,
    "idempotency-key-replay-withheld": 409,
    "content-too-large": 413,
    "unsupported-media-type": 415,
    "invariant-violated": 422,
    "evidence-unresolved": 422,
    "lineage-forgotten": 422,
    "instance-unnamed": 422,
    "subject-required": 422,
    "policy-not-correctable": 422,
    "route-external": 422,
    "content-hash-mismatch": 422,
    "content-schema-violated": 422,
    "semantic-unavailable": 422,
    "embedding-model-unknown": 422,
    "refresh-handler-missing": 422,
    "refresh-failed": 422,
    "rate-limited": 429,
    "internal-error": 500,
    "unavailable": 503,
}
"""Every code that an answer may hold. docs/errors.md explains each; a test keeps the two equal."""

RETRIED = ("40001", "40P01")
"""SQLSTATEs after which the whole transaction is run again: serialization failure, deadlock."""


def sqlstate_of(error: BaseException) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


def is_connection_lost(error: BaseException) -> bool:
    """Whether the database went away rather than refused: no SQLSTATE, or one of connections and shutdown."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = sqlstate_of(error)
    return state is None or state[:2] == "08" or state in ("57P01", "57P02", "57P03")


def domain_error_of(error: Exception) -> DomainError:
    """What the answer says of any exception. Whatever isn't known is logged with its traceback, and answers 500."""
    if isinstance(error, DomainError):
        if isinstance(error, RunDamaged):
            # Here, because the web server reads this file before there are models.
            from memory.actions.note_damage import note_damage

            note_damage(error)
        return error
    if isinstance(error, admission.BadInput):
        return BadInput(
            issues=[{"path": issue["path"], "message": issue["message"]} for issue in error.issues]
        )
    if isinstance(error, admission.TooLarge):
        return BodyTooLarge(limit_bytes=error.max_bytes)
    if isinstance(error, DatabaseError | InterfaceError):
        state = sqlstate_of(error) or ""
        if (
            is_connection_lost(error)
            or state[:2] == "53"
            or state in ("57014", "55P03", "25P03", "25P04", *RETRIED)
        ):
            log.warning("database unavailable", sqlstate=state or None)
            return Unavailable()
        if isinstance(error, DataError):
            log.warning("value refused by the database", sqlstate=state)
            return BadInput.at("", "holds a value that can't be stored")
    log.error("unexpected error", error=type(error).__name__, where=_frames(error))
    return InternalError()


def _frames(error: Exception) -> list[str]:
    """Where it happened. The message stays out of the log: it may quote memory text."""
    return [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)[-12:]
    ]


def body_of(error: DomainError, request_id: str) -> dict[str, Any]:
    return {
        "error": {
            "code": error.code,
            "message": str(error),
            "details": error.details,
            "requestId": request_id,
        }
    }


def refused(error: Exception, request: HttpRequest) -> tuple[str, HttpResponse]:
    """Code and answer for whatever was raised, made in a frame of its own: an error in a variable of a frame that its traceback
    names is garbage that only the collector finds, and with it the whole body that was refused."""
    told = domain_error_of(error)
    return told.code, respond(told, request)


def respond(error: DomainError, request: HttpRequest) -> HttpResponse:
    """The answer for an error, with the headers that its status asks for."""
    request_id = getattr(request, "request_id", "")
    response = HttpResponse(
        dumps(body_of(error, request_id)),
        status=STATUS[error.code],
        content_type="application/json",
    )
    if response.status_code == 401:
        response["WWW-Authenticate"] = 'Bearer realm="kindmem"'
    if isinstance(error, MethodNotAllowed):
        response["Allow"] = ", ".join(error.allowed)
    if isinstance(error, RateLimited):
        response["Retry-After"] = str(error.retry_after_seconds)
    elif isinstance(error, Unavailable | IdempotencyInFlight):
        response["Retry-After"] = "1"
    return response
