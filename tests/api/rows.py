"""One row a route: what makes it succeed, so that tests can try each with everything else.

A row names the smallest body that is accepted, where each id in the path comes from, and which roles are let through to what
is their own. A route without a row fails `test_every_operation_has_a_row`.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.builders import ApiClient

PROJECT, USER = "project-own", "person-own"
OTHER_PROJECT, OTHER_USER = "project-other", "person-other"
KEYS = ("agent", "app", "admin", "auditor")
WRITERS = frozenset({"agent", "app", "admin", "member:owner", "member:admin"})
READERS = WRITERS | {"auditor", "member:auditor"}
PEOPLE = frozenset({"member:person"})
RECORD_WRITERS = (WRITERS - {"agent"}) | PEOPLE
GOVERNORS = frozenset({"admin", "member:owner", "member:admin"})


def new_name(prefix: str = "n") -> str:
    return f"{prefix}-{secrets.token_hex(6)}"


@dataclass(frozen=True)
class Place:
    """Where things are made: a client of the tenant that may do anything, and the containers to put them in."""

    client: ApiClient
    project: str = PROJECT
    user: str = USER
    canary: str = "plain"
    made: list[str] = field(default_factory=list)
    """Every id that was made here."""

    def make(self, method: str, path: str, body: Any) -> Any:
        answer = self.client.request(method, path, body)
        assert answer.status_code in (200, 201), answer.content
        told = answer.json()
        self.made.extend(told[name] for name in ("id", "runId") if name in told)
        return told

    def scope(self) -> dict[str, str]:
        return {"projectId": self.project}


def fact(place: Place) -> str:
    body = {"type": "note", "scope": place.scope(), "content": {"said": place.canary}}
    return str(place.make("POST", "/v1/memory/facts", body)["id"])


def run(place: Place) -> str:
    name = new_name("run")
    body = {
        "kind": "user-message",
        "scope": place.scope(),
        "actor": place.canary,
        "payload": place.canary,
    }
    place.make("POST", f"/v1/memory/runs/{name}/log", body)
    return name


def entry(place: Place) -> str:
    body = {
        "kind": "user-message",
        "scope": place.scope(),
        "actor": place.canary,
        "payload": place.canary,
    }
    return str(place.make("POST", f"/v1/memory/runs/{new_name('run')}/log", body)["id"])


def fact_type(place: Place) -> str:
    name = new_name("type")
    place.make("PUT", f"/v1/memory/types/{name}", {"contentSchema": {"title": place.canary}})
    return name


def new_key() -> str:
    """A record's key that nothing was remembered under."""
    return f"travel.seat_{secrets.token_hex(4)}"


def record_body(place: Place, **changed: Any) -> dict[str, Any]:
    return {
        "subject": {"type": "user", "id": place.user},
        "key": new_key(),
        "value": place.canary,
        "authority": "preference",
        "source": {
            "type": "user_stated",
            "evidence": {"kind": "message", "ref": new_name("message")},
            "observations": 1,
            "captured_at": "2026-03-01T09:30:00Z",
            "captured_by": "booker@2.1.0",
        },
        "scope": {
            "level": "user",
            "bindings": {},
            "valid_from": None,
            "valid_until": None,
            "revalidate_on": [],
        },
        "correction": {"route": "fix-value", "supersedes": [], "broadened": False},
        "lifecycle": {"sensitivity": "none", "retain_value_after_expiry": False},
        **changed,
    }


def record(place: Place) -> str:
    return str(place.make("POST", "/v1/memory/records", record_body(place))["id"])


@dataclass(frozen=True)
class Row:
    """`ids`: how the id of each path parameter is made. `body`: the smallest accepted one. `free`: its fields that take any JSON.

    `allowed`: the roles that get `status` on what is their own; `otherwise`: those that get another one, such as an agent whose
    act waits for a person. `names`: bodies that name an id which may be another tenant's.
    `never`: JSON texts that a free field doesn't take. `makes`: the path's id is made by the call when it isn't there.
    """

    allowed: frozenset[str]
    status: int = 200
    otherwise: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Callable[[Place], str]] = field(default_factory=dict)
    body: Callable[[Place], dict[str, Any]] | None = None
    free: tuple[str, ...] = ()
    never: tuple[bytes, ...] = ()
    names: Mapping[str, Callable[[Place, str], dict[str, Any]]] = field(default_factory=dict)
    makes: bool = False

    def ids_in(self, place: Place) -> dict[str, str]:
        """New things of this place, one a path parameter."""
        return {name: make(place) for name, make in self.ids.items()}

    def smallest(self, place: Place) -> dict[str, Any]:
        return self.body(place) if self.body else {}

    @property
    def statuses(self) -> dict[str, int]:
        """Role → what it gets on what is its own."""
        return {**dict.fromkeys(self.allowed, self.status), **self.otherwise}


def _entry_body(place: Place, **more: Any) -> dict[str, Any]:
    return {"kind": "tool-call", "scope": place.scope(), **more}


def _fact_body(place: Place, **more: Any) -> dict[str, Any]:
    return {"type": "note", "scope": place.scope(), "content": "x", **more}


def _correction(place: Place, **more: Any) -> dict[str, Any]:
    context = {"user_id": place.user, "trip_id": new_name("trip")}
    return {
        "new_value": "corrected",
        "context": context,
        "subject": {"type": "user", "id": place.user},
        **more,
    }


ROWS: dict[str, Row] = {
    "memory.me": Row(READERS | PEOPLE),
    # the run log
    "memory.listRuns": Row(READERS | PEOPLE),
    "memory.readLog": Row(READERS, ids={"run_id": run}),
    "memory.appendLog": Row(
        WRITERS,
        201,
        ids={"run_id": run},
        body=_entry_body,
        free=("payload",),
        names={
            "id": lambda place, other: _entry_body(place, id=other),
            "causedByLogId": lambda place, other: _entry_body(place, causedByLogId=other),
        },
        makes=True,
    ),
    "memory.appendLogBatch": Row(
        WRITERS,
        201,
        ids={"run_id": run},
        body=lambda place: {"entries": [_entry_body(place)]},
        names={"id": lambda place, other: {"entries": [_entry_body(place, id=other)]}},
        makes=True,
    ),
    "memory.verifyRun": Row(READERS, ids={"run_id": run}, body=lambda place: {}),
    "memory.getLogEntry": Row(READERS, ids={"entry_id": entry}),
    # facts
    "memory.listFacts": Row(READERS | PEOPLE),
    "memory.writeFact": Row(
        WRITERS,
        201,
        body=_fact_body,
        free=("content",),
        names={
            "id": lambda place, other: _fact_body(place, id=other),
            "causedByLogId": lambda place, other: _fact_body(place, causedByLogId=other),
            "subject": lambda place, other: _fact_body(
                place, subjects=[{"kind": "external", "id": other}]
            ),
        },
    ),
    "memory.getFact": Row(READERS, ids={"fact_id": fact}),
    "memory.deleteFact": Row(WRITERS, ids={"fact_id": fact}),
    "memory.supersedeFact": Row(
        WRITERS,
        ids={"fact_id": fact},
        body=lambda place: {"content": "y"},
        free=("content",),
        names={
            "causedByLogId": lambda place, other: {"content": "y", "causedByLogId": other},
        },
    ),
    "memory.verifyFact": Row(WRITERS - {"agent"}, ids={"fact_id": fact}, body=lambda place: {}),
    # What is asked for is no view of a source, and its caller is told so.
    "memory.refreshFact": Row(WRITERS, 422, ids={"fact_id": fact}, body=lambda place: {}),
    "memory.listFactRevisions": Row(READERS, ids={"fact_id": fact}),
    "memory.retrieve": Row(
        READERS | PEOPLE,
        body=lambda place: {"mode": "keyword", "query": place.canary},
        names={"type": lambda place, other: {"mode": "list", "type": other}},
    ),
    # the registry of fact types
    "memory.listTypes": Row(GOVERNORS | {"auditor", "member:auditor"}),
    "memory.getType": Row(GOVERNORS | {"auditor", "member:auditor"}, ids={"type": fact_type}),
    "memory.declareType": Row(
        GOVERNORS, ids={"type": fact_type}, body=lambda place: {}, makes=True
    ),
    # memory records
    "memory.listRecords": Row(READERS | PEOPLE),
    "memory.remember": Row(
        RECORD_WRITERS,
        201,
        otherwise={"agent": 422},
        body=record_body,
        free=("value",),
        never=(b"null",),
        names={
            "id": lambda place, other: record_body(place, id=other),
            "derived_from": lambda place, other: record_body(
                place, lineage={"derived_from": [other]}
            ),
        },
    ),
    "memory.recall": Row(
        READERS | PEOPLE,
        body=lambda place: {"key_prefix": "travel", "context": {"user_id": place.user}},
        names={
            "subject": lambda place, other: {
                "key_prefix": "travel",
                "subject": {"type": "user", "id": other},
                "context": {},
            },
            "run_id": lambda place, other: {"key_prefix": "t", "context": {}, "run_id": other},
        },
    ),
    "memory.correct": Row(
        RECORD_WRITERS,
        201,
        otherwise={"agent": 202},
        body=lambda place: _correction(place, key=new_key()),
        free=("new_value",),
        never=(b"null",),
        names={
            "expect": lambda place, other: _correction(place, key=new_key(), expect=other),
            "evidence": lambda place, other: _correction(
                place, key=new_key(), evidence={"kind": "message", "ref": other}
            ),
        },
    ),
    "memory.correctRecord": Row(
        RECORD_WRITERS,
        201,
        otherwise={"agent": 202},
        ids={"record_id": record},
        body=lambda place: _correction(place),
        names={"expect": lambda place, other: _correction(place, expect=other)},
    ),
    "memory.confirmRecord": Row(
        RECORD_WRITERS,
        otherwise={"agent": 202},
        ids={"record_id": record},
        body=lambda place: {},
        names={
            "evidence": lambda place, other: {"evidence": {"kind": "message", "ref": other}},
        },
    ),
    "memory.forgetRecord": Row(
        RECORD_WRITERS, otherwise={"agent": 202}, ids={"record_id": record}, body=lambda place: {}
    ),
    "memory.emitEvent": Row(
        WRITERS, body=lambda place: {"type": "trip_over", "trip_id": new_name("trip")}
    ),
    "memory.explainRecord": Row(READERS | PEOPLE, ids={"record_id": record}),
    "memory.recordHistory": Row(READERS | PEOPLE, ids={"record_id": record}),
    "memory.getRecord": Row(READERS | PEOPLE, ids={"record_id": record}),
}
