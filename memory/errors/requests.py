"""Refusals of a request as such: its shape and size, repeating it, and a server that can't answer."""

from dataclasses import dataclass

from memory.errors.base import DomainError


@dataclass(eq=False)
class BadInput(DomainError):
    """The input is malformed: shape, type, range or inadmissible JSON."""

    code = "bad-input"
    message = "The input is not valid. See details.issues for where and why."
    issues: list[dict[str, str]]

    @classmethod
    def at(cls, path: str, message: str) -> "BadInput":
        """One issue at one JSON Pointer (or parameter name)."""
        return cls(issues=[{"path": path, "message": message}])


@dataclass(eq=False)
class UnknownField(DomainError):
    code = "unknown-field"
    message = "The request names a field, parameter or scope key that is not known here."
    issues: list[dict[str, str]]

    @classmethod
    def named(cls, *paths: str) -> "UnknownField":
        return cls(issues=[{"path": path, "message": "is not known here"} for path in paths])


@dataclass(eq=False)
class ContentTooLarge(DomainError):
    code = "content-too-large"
    message = (
        "The content is too large to keep inline. Put it in blob storage and send contentRef: "
        "blob://<provider>/<bucket>/<key>."
    )
    limit_bytes: int


class BodyTooLarge(ContentTooLarge):
    message = "The request body is larger than this route takes."


class ValueTooLarge(ContentTooLarge):
    message = "The value is larger than a record takes. Remember a pointer to it instead."


@dataclass(eq=False)
class MethodNotAllowed(DomainError):
    code = "method-not-allowed"
    message = "This route doesn't take that method."
    allowed: list[str]


class UnsupportedMediaType(DomainError):
    code = "unsupported-media-type"
    message = "Send JSON: Content-Type: application/json, no Content-Encoding."


class NotAcceptable(DomainError):
    code = "bad-input"
    message = "Answers are JSON only."


class IdempotencyBodyMismatch(DomainError):
    code = "idempotency-key-body-mismatch"
    message = "This Idempotency-Key was used with another request. Use a new key for a new request."


class IdempotencyInFlight(DomainError):
    code = "idempotency-key-in-flight"
    message = "The first request with this Idempotency-Key is still running. Try again in a moment."


class IdempotencyWithheld(DomainError):
    code = "idempotency-key-replay-withheld"
    message = (
        "The request was done. Its first answer held something that was forgotten or erased since, or was too large to keep: "
        "read what is there now."
    )


@dataclass(eq=False)
class RateLimited(DomainError):
    code = "rate-limited"
    message = "Too much at once. Wait as long as Retry-After says."
    retry_after_seconds: int


class Unavailable(DomainError):
    code = "unavailable"
    message = (
        "The service can't answer right now. A change may or may not have been made: send it again with the same "
        "Idempotency-Key."
    )


class InternalError(DomainError):
    code = "internal-error"
    message = "Something went wrong on our side. Quote the request id."
