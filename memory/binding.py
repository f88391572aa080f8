"""The Python binding: the five methods of the memory contract over the same queries and actions as the HTTP API.

Every call names its tenant, which must be the principal's, and answers a `Result`: the value, or a typed error with a code.
Nothing is raised for what a caller can get wrong. Source: @kindgi/memory (MemoryQueryBinding).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from memory import admission
from memory.access import Principal, Scope, own_scope
from memory.actions.append_log_entries import already_stored, append_log_entries
from memory.api.authentication import principal_of_token
from memory.api.json_text import dumps
from memory.api.schemas_log import NEW_ENTRY
from memory.api.shapes import Shape
from memory.api.transactions import in_transaction
from memory.embeddings.provider import EmbeddingError
from memory.errors import BadInput, DomainError, EntryIdTaken
from memory.fact_shape import FactView
from memory.ids import new_text_id
from memory.log_entry import ABSENT, NewEntry, StoredEntry
from memory.queries.facts import FactFilters, fact_revisions, list_facts
from memory.queries.retrieve import Retrieval
from memory.queries.run_log import run_log
from memory.refresh.on_read import refreshed_on_read, retrieved_on_read
from memory.tenancy import tenant_context

T = TypeVar("T")
ErrorCode = Literal[
    "invalid-log-entry",
    "invalid-fact",
    "fact-not-found",
    "log-not-found",
    "refresh-handler-missing",
    "retention-violation",
    "persistence-error",
    "embedding-error",
    "embedding-unavailable",
    "embedding-model-missing",
    "embedding-timeout",
    "embedding-bad-answer",
]
_MOST = 1000
_READ_BATCH = 1000
_NEW_ENTRY = Shape(NEW_ENTRY)
_OF_DOMAIN: dict[str, ErrorCode] = {
    "fact-not-found": "fact-not-found",
    "log-not-found": "log-not-found",
    "refresh-handler-missing": "refresh-handler-missing",
    "retention-violation": "retention-violation",
    "legal-hold": "retention-violation",
    "semantic-unavailable": "embedding-model-missing",
    "embedding-model-unknown": "embedding-model-missing",
    "unavailable": "persistence-error",
}


@dataclass(frozen=True, slots=True)
class MemoryFailure:
    """What went wrong. `rule` is the code that the HTTP API would give, `details` what it names."""

    code: ErrorCode
    message: str
    rule: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    value: T
    kind: Literal["ok"] = "ok"


@dataclass(frozen=True, slots=True)
class Err:
    error: MemoryFailure
    kind: Literal["err"] = "err"


Result = Ok[T] | Err


@dataclass(frozen=True, slots=True)
class ListFactsInput:
    """`scope` is partial. latest_only: the current revision of each fact; else every revision, newest first per fact."""

    tenant_id: str
    type: str | None = None
    scope: Scope = field(default_factory=dict)
    limit: int = 50
    latest_only: bool = True


@dataclass(frozen=True, slots=True)
class SearchByKeywordInput:
    tenant_id: str
    query: str
    type: str | None = None
    scope: Scope = field(default_factory=dict)
    top_k: int = 10


@dataclass(frozen=True, slots=True)
class SearchBySemanticInput:
    """embedding_model: search facts of this model only; None for the default."""

    tenant_id: str
    query: str
    type: str | None = None
    scope: Scope = field(default_factory=dict)
    top_k: int = 10
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class AppendLogInput:
    tenant_id: str
    run_id: str
    kind: str
    scope: Scope
    id: str | None = None
    actor: str | None = None
    payload: Any = ABSENT
    caused_by_log_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReadLogInput:
    tenant_id: str
    run_id: str
    since_sequence: int = 0


@dataclass(frozen=True, slots=True)
class RetrievalHit:
    """A fact in its wire form, and its score: keyword an unbounded positive rank, semantic a cosine. Higher is better."""

    fact: dict[str, Any]
    score: float


@dataclass(frozen=True, slots=True)
class MemoryBinding:
    """Memory as one principal sees it. Facts and entries come in their wire form (the kindgi memory schema 1.3.0)."""

    principal: Principal

    @classmethod
    def for_token(cls, token: str) -> "MemoryBinding":
        """The binding of an API key. Raises AuthMissing, AuthExpired, AuthRevoked."""
        return cls(in_transaction(lambda: principal_of_token(token)))

    @property
    def tenant(self) -> UUID:
        return self.principal.tenant_id

    def list_facts(self, given: ListFactsInput) -> Result[list[dict[str, Any]]]:
        def work() -> list[dict[str, Any]]:
            self._needs("read", given.tenant_id, given.limit, "limit")
            filters = FactFilters(type=given.type, scope=own_scope(self.principal, given.scope))
            with tenant_context(self.tenant):
                facts = list_facts(self.principal, filters, limit=given.limit)
                if not given.latest_only:
                    return self._revisions(facts, given.limit)
            return [_plain(fact.wire()) for fact in refreshed_on_read(self.principal, facts)]

        return _result(work, "invalid-fact")

    def _revisions(self, facts: list[FactView], limit: int) -> list[dict[str, Any]]:
        """Every revision of each fact, in the running transaction, up to the limit."""
        revisions: list[dict[str, Any]] = []
        for fact in facts:
            if len(revisions) >= limit:
                break
            every = [fact] if fact.version == 1 else fact_revisions(self.principal, fact.id)
            revisions += [_plain(one.wire()) for one in every]
        return revisions[:limit]

    def search_by_keyword(self, given: SearchByKeywordInput) -> Result[list[RetrievalHit]]:
        asked = Retrieval(
            mode="keyword",
            query=given.query,
            type=given.type,
            scope=given.scope,
            limit=given.top_k,
        )
        return self._search(given.tenant_id, asked)

    def search_by_semantic(self, given: SearchBySemanticInput) -> Result[list[RetrievalHit]]:
        asked = Retrieval(
            mode="semantic",
            query=given.query,
            type=given.type,
            scope=given.scope,
            limit=given.top_k,
            embedding_model=given.embedding_model,
        )
        return self._search(given.tenant_id, asked)

    def append_log(self, given: AppendLogInput) -> Result[dict[str, Any]]:
        def work() -> dict[str, Any]:
            self._needs("append", given.tenant_id)
            entry = self._new_entry(given)
            try:
                stored = self._append(given, entry)
            except EntryIdTaken as error:
                if not error.is_of_this_moment:
                    raise
                # A twin of this call was first: what it stored is found now.
                stored = self._append(given, entry)
            return _plain(stored.wire())

        return _result(work, "invalid-log-entry")

    def _append(self, given: AppendLogInput, entry: NewEntry) -> StoredEntry:
        asked: dict[str, Any] = {
            "principal": self.principal,
            "run_id": given.run_id,
            "entries": [entry],
        }
        with tenant_context(self.tenant):
            stored = already_stored(**asked) if given.id is not None else None
            return (stored or append_log_entries(**asked))[0]

    def read_log(self, given: ReadLogInput) -> Result[list[dict[str, Any]]]:
        def work() -> list[dict[str, Any]]:
            self._needs("read", given.tenant_id)
            entries: list[StoredEntry] = []
            since = max(0, given.since_sequence)
            with tenant_context(self.tenant):
                while True:
                    batch = run_log(
                        self.principal, given.run_id, since_sequence=since, limit=_READ_BATCH
                    )
                    entries += batch
                    if len(batch) < _READ_BATCH:
                        return [_plain(entry.wire()) for entry in entries]
                    since = batch[-1].sequence + 1

        return _result(work, "invalid-log-entry")

    def _search(self, tenant_id: str, asked: Retrieval) -> Result[list[RetrievalHit]]:
        def work() -> list[RetrievalHit]:
            self._needs("read", tenant_id, asked.limit, "top_k")
            found = retrieved_on_read(self.principal, asked)
            return [
                RetrievalHit(_plain(fact.wire()), score or 0.0) for fact, score in found.results
            ]

        return _result(work, "invalid-fact")

    def _new_entry(self, given: AppendLogInput) -> NewEntry:
        """The entry with its shape checked, as the HTTP API checks it."""
        body: dict[str, Any] = {"kind": given.kind, "scope": dict(given.scope)}
        optional = {"id": given.id, "actor": given.actor, "causedByLogId": given.caused_by_log_id}
        body |= {name: value for name, value in optional.items() if value is not None}
        if given.payload is not ABSENT:
            body["payload"] = given.payload
        admission.admit_value(body)
        _NEW_ENTRY.check(body)
        if not 1 <= len(given.run_id) <= admission.ID_MAX or "\x00" in given.run_id:
            raise BadInput.at("/run_id", f"must have 1 to {admission.ID_MAX} characters")
        return NewEntry(
            kind=given.kind,
            scope=own_scope(self.principal, given.scope),
            id=given.id or new_text_id(),
            actor=given.actor,
            payload=given.payload,
            caused_by=given.caused_by_log_id,
        )

    def _needs(
        self, ability: Literal["read", "append"], tenant_id: str, limit: int = 1, name: str = ""
    ) -> None:
        if tenant_id != self.principal.tenant_slug:
            raise BadInput.at("/tenant_id", "is not the principal's tenant")
        if not 1 <= limit <= _MOST:
            raise BadInput.at(f"/{name}", f"must be 1 to {_MOST}")
        self.principal.needs(ability)


def _plain(wire: dict[str, Any]) -> dict[str, Any]:
    """The wire form as plain values, stored texts read."""
    plain: dict[str, Any] = json.loads(dumps(wire))
    return plain


def _result(work: Callable[[], T], invalid: ErrorCode) -> Result[T]:
    try:
        return Ok(work())
    except DomainError as error:
        # A model that doesn't answer is `unavailable` over HTTP; here its own code says what it did.
        if isinstance(error.__cause__, EmbeddingError):
            code: ErrorCode = error.__cause__.code  # type: ignore[assignment]  # its codes are ours
        else:
            code = _OF_DOMAIN.get(error.code, invalid)
        return Err(MemoryFailure(code, str(error), error.code, error.details))
    except admission.BadInput as error:
        return Err(
            MemoryFailure(
                invalid, "The value is not admissible JSON.", error.code, {"issues": error.issues}
            )
        )
    except EmbeddingError as error:
        return Err(MemoryFailure(error.code, str(error)))  # type: ignore[arg-type]  # its codes are ours
    except (DatabaseError, InterfaceError):
        return Err(MemoryFailure("persistence-error", "The database can't do this now."))
