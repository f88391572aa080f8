"""Refusals about facts: their types and versions, how they are found, and the sources they are refreshed from."""

from dataclasses import dataclass

from memory.errors.base import DomainError, NotFound


class FactNotFound(NotFound):
    code = "fact-not-found"
    message = "There is no such fact, or you may not see it."


class TypeNotFound(NotFound):
    code = "type-not-found"
    message = (
        "Nobody declared this type. Facts may have it all the same; declare it to give it rules."
    )


@dataclass(eq=False)
class FactChanged(DomainError):
    code = "fact-changed"
    message = "Someone changed this fact first. Read it again and decide anew."
    fact_id: str
    current_version: int


@dataclass(eq=False)
class IdTaken(DomainError):
    code = "id-taken"
    message = "This id is taken."
    id: str


@dataclass(eq=False)
class ContentHashMismatch(DomainError):
    code = "content-hash-mismatch"
    message = "The contentHash or size that was sent is not that of the content."
    field: str


@dataclass(eq=False)
class ContentSchemaViolated(DomainError):
    code = "content-schema-violated"
    message = "The content does not fit the schema of its type: details.issues says where."
    type: str
    issues: list[dict[str, str]]


class SemanticUnavailable(DomainError):
    code = "semantic-unavailable"
    message = "Search by meaning needs an embedding provider, and none is set up here."


@dataclass(eq=False)
class EmbeddingModelUnknown(DomainError):
    code = "embedding-model-unknown"
    message = (
        "This embedding model is not available here. GET /v1/memory/types shows which are in use."
    )
    model: str


@dataclass(eq=False)
class RefreshHandlerMissing(DomainError):
    code = "refresh-handler-missing"
    message = "This fact has no source, or no refresh handler is registered under its handler id."
    fact_id: str


@dataclass(eq=False)
class RefreshFailed(DomainError):
    code = "refresh-failed"
    message = "The source could not be read; the fact is as it was."
    fact_id: str
    reason: str
