"""One row a route: what makes it succeed, so that tests can try each with everything else.

A row names the smallest body that is accepted, where each id in the path comes from, and which roles are let through to what
is their own. A route without a row fails `tests/completeness/test_routes.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.api.endpoints import Endpoint
from tests.api.makers import (
    Place,
    entry,
    fact,
    fact_type,
    new_key,
    new_name,
    policy_source,
    policy_source_body,
    receipt,
    record,
    record_body,
    route,
    route_body,
    run,
    sealed_run,
    verification,
)
from tests.api.makers_lifecycle import (
    api_key,
    api_key_body,
    complaint,
    dry_run,
    erasure,
    erasure_body,
    held_up_erasure,
    hold,
    hold_body,
    member,
    member_body,
    quarantine,
    suspicious_run,
    webhook,
    webhook_body,
)

KEYS = ("agent", "app", "admin", "auditor")
WRITERS = frozenset({"agent", "app", "admin", "member:owner", "member:admin"})
READERS = WRITERS | {"auditor", "member:auditor"}
PEOPLE = frozenset({"member:person"})
RECORD_WRITERS = (WRITERS - {"agent"}) | PEOPLE
AUDITORS = frozenset({"auditor", "member:auditor"})
GOVERNORS = frozenset({"admin", "member:owner", "member:admin"})
MEMBERS_THAT_GOVERN = frozenset({"member:owner", "member:admin"})


@dataclass(frozen=True)
class Row:
    """What is known of one operation.

    allowed: the roles that get `status` on what is their own. otherwise: those that get another one, such as an agent whose act
    waits for a person. ids: how the id of each path parameter is made. fixed: those that are the same for everybody. body: the
    smallest accepted one. free: its fields that take any JSON. never: JSON texts that a free field doesn't take. names: bodies
    that name an id which may be another tenant's. makes: the path's id is made by the call when it isn't there.
    """

    allowed: frozenset[str]
    status: int = 200
    otherwise: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Callable[[Place], str]] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[Place], dict[str, Any]] | None = None
    free: tuple[str, ...] = ()
    never: tuple[bytes, ...] = ()
    names: Mapping[str, Callable[[Place, str], dict[str, Any]]] = field(default_factory=dict)
    makes: bool = False

    def ids_in(self, place: Place) -> dict[str, str]:
        """New things of this place, one a path parameter."""
        return {name: make(place) for name, make in self.ids.items()}

    def url(self, endpoint: Endpoint, ids: Mapping[str, str]) -> str:
        return endpoint.route.url(**{**self.fixed, **ids})

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
    "memory.proveRun": Row(READERS, ids={"run_id": sealed_run}),
    "memory.exportRun": Row(GOVERNORS | AUDITORS, ids={"run_id": sealed_run}),
    # Sizes are numbers that every tenant has: `test_checkpoints_are_of_one_tenant` tells them apart.
    "memory.listCheckpoints": Row(READERS | PEOPLE),
    "memory.getCheckpoint": Row(READERS | PEOPLE, 404, fixed={"size": "999999"}),
    "memory.proveConsistency": Row(
        READERS | PEOPLE, 404, fixed={"earlier": "999998", "later": "999999"}
    ),
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
    "memory.listTypes": Row(GOVERNORS | AUDITORS),
    "memory.getType": Row(GOVERNORS | AUDITORS, ids={"type": fact_type}),
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
    # correction routes, receipts, policy sources
    "memory.actOnRoute": Row(
        RECORD_WRITERS,
        otherwise={"agent": 202},
        ids={"record_id": record},
        fixed={"name": "confirm"},
        body=lambda place: {},
    ),
    "memory.undoReceipt": Row(
        RECORD_WRITERS, otherwise={"agent": 202}, ids={"number": receipt}, body=lambda place: {}
    ),
    "memory.listRoutes": Row(READERS | PEOPLE),
    "memory.registerRoute": Row(GOVERNORS, 201, body=route_body),
    "memory.changeRoute": Row(
        GOVERNORS, ids={"name": route}, body=lambda place: {"label": "Ask finance"}
    ),
    "memory.listPolicySources": Row(GOVERNORS | AUDITORS),
    "memory.registerPolicySource": Row(GOVERNORS, 201, body=policy_source_body),
    "memory.changePolicySource": Row(
        GOVERNORS, ids={"source_id": policy_source}, body=lambda place: {"enabled": False}
    ),
    # people's pages
    "memory.makePageLink": Row(
        frozenset({"app"}),
        201,
        body=lambda place: {"subject": place.user},
        names={"subject": lambda place, other: {"subject": other}},
    ),
    # verifications by the worker
    "memory.listVerifications": Row(GOVERNORS | AUDITORS),
    "memory.askVerification": Row(
        GOVERNORS | AUDITORS,
        202,
        body=lambda place: {"runId": run(place)},
        names={"runId": lambda place, other: {"runId": other}},
    ),
    "memory.getVerification": Row(GOVERNORS | AUDITORS, ids={"verification_id": verification}),
    "memory.cancelVerification": Row(
        GOVERNORS | AUDITORS, ids={"verification_id": verification}, body=lambda place: {}
    ),
    # keys, members
    "memory.listKeys": Row(GOVERNORS | AUDITORS),
    "memory.createKey": Row(GOVERNORS, 201, body=api_key_body),
    "memory.getKey": Row(GOVERNORS | AUDITORS, ids={"prefix": api_key}),
    "memory.rotateKey": Row(GOVERNORS, 201, ids={"prefix": api_key}, body=lambda place: {}),
    "memory.setKeyQuota": Row(
        GOVERNORS, ids={"prefix": api_key}, body=lambda place: {"writes": 100}
    ),
    "memory.revokeKey": Row(GOVERNORS, ids={"prefix": api_key}, body=lambda place: {}),
    "memory.listMembers": Row(GOVERNORS | AUDITORS),
    "memory.addMember": Row(GOVERNORS, 201, body=member_body),
    "memory.getMember": Row(GOVERNORS | AUDITORS, ids={"member_id": member}),
    "memory.changeMember": Row(
        GOVERNORS, ids={"member_id": member}, body=lambda place: {"role": "auditor"}
    ),
    "memory.endMember": Row(GOVERNORS, ids={"member_id": member}, body=lambda place: {}),
    # retention, legal holds, erasures
    "memory.getRetention": Row(GOVERNORS | AUDITORS),
    "memory.setRetention": Row(GOVERNORS, body=lambda place: {}),
    "memory.simulateRetention": Row(GOVERNORS | AUDITORS, body=lambda place: {}),
    "memory.explainRetention": Row(READERS, ids={"fact_id": fact}),
    "memory.listSweeps": Row(GOVERNORS | AUDITORS),
    "memory.dryRunSweep": Row(GOVERNORS, 201, body=lambda place: {}),
    "memory.getSweep": Row(GOVERNORS | AUDITORS, ids={"sweep_id": dry_run}),
    "memory.listSweepEvidence": Row(GOVERNORS | AUDITORS, ids={"sweep_id": dry_run}),
    "memory.listHolds": Row(GOVERNORS | AUDITORS),
    "memory.placeHold": Row(GOVERNORS, 201, body=hold_body),
    "memory.previewHold": Row(GOVERNORS, body=lambda place: {"scope": {"subjects": ["nobody"]}}),
    "memory.getHold": Row(GOVERNORS | AUDITORS, ids={"hold_id": hold}),
    "memory.reviewHold": Row(
        GOVERNORS, ids={"hold_id": hold}, body=lambda place: {"reviewOn": "2090-01-01"}
    ),
    # No API key takes part, and a session that has not just proved who it is is told so.
    "memory.requestHoldRelease": Row(
        MEMBERS_THAT_GOVERN, 409, ids={"hold_id": hold}, body=lambda place: {"reason": "closed"}
    ),
    "memory.approveHoldRelease": Row(
        MEMBERS_THAT_GOVERN, 409, ids={"hold_id": hold}, body=lambda place: {}
    ),
    "memory.withdrawHoldRelease": Row(
        MEMBERS_THAT_GOVERN, 409, ids={"hold_id": hold}, body=lambda place: {}
    ),
    "memory.listErasures": Row(GOVERNORS | AUDITORS),
    "memory.createErasure": Row(GOVERNORS, 202, body=erasure_body),
    "memory.previewErasure": Row(
        GOVERNORS,
        body=erasure_body,
        names={"factId": lambda place, other: {"factId": other}},
    ),
    "memory.getErasure": Row(GOVERNORS | AUDITORS, ids={"erasure_id": erasure}),
    "memory.resumeErasure": Row(GOVERNORS, ids={"erasure_id": erasure}, body=lambda place: {}),
    "memory.cancelErasure": Row(
        GOVERNORS, ids={"erasure_id": held_up_erasure}, body=lambda place: {}
    ),
    "memory.exportErasures": Row(GOVERNORS | AUDITORS),
    # reviews
    "memory.listReviews": Row(GOVERNORS),
    "memory.getReview": Row(GOVERNORS, ids={"review_id": complaint}, fixed={"kind": "withdrawal"}),
    "memory.approveReview": Row(
        GOVERNORS,
        ids={"review_id": complaint},
        fixed={"kind": "withdrawal"},
        body=lambda place: {},
    ),
    "memory.rejectReview": Row(
        GOVERNORS,
        ids={"review_id": complaint},
        fixed={"kind": "withdrawal"},
        body=lambda place: {},
    ),
    "memory.decideReviews": Row(GOVERNORS, body=lambda place: {"decision": "reject", "items": []}),
    # quarantines
    "memory.listQuarantines": Row(GOVERNORS | AUDITORS),
    "memory.placeQuarantine": Row(
        GOVERNORS, 201, body=lambda place: {"run": suspicious_run(place), "reason": "r"}
    ),
    "memory.previewQuarantine": Row(GOVERNORS, body=lambda place: {"run": "nosuch"}),
    "memory.getQuarantine": Row(GOVERNORS | AUDITORS, ids={"quarantine_id": quarantine}),
    "memory.liftQuarantine": Row(
        GOVERNORS, ids={"quarantine_id": quarantine}, body=lambda place: {}
    ),
    "memory.rollBackQuarantine": Row(
        GOVERNORS, ids={"quarantine_id": quarantine}, body=lambda place: {}
    ),
    "memory.replayErasures": Row(GOVERNORS, body=lambda place: {"erasures": []}),
    # webhooks
    "memory.listWebhooks": Row(GOVERNORS),
    "memory.registerWebhook": Row(GOVERNORS, 201, body=webhook_body),
    "memory.getWebhook": Row(GOVERNORS, ids={"webhook_id": webhook}),
    "memory.changeWebhook": Row(
        GOVERNORS, ids={"webhook_id": webhook}, body=lambda place: {"enabled": True}
    ),
    "memory.removeWebhook": Row(GOVERNORS, ids={"webhook_id": webhook}),
    "memory.rotateWebhookSecret": Row(
        GOVERNORS, ids={"webhook_id": webhook}, body=lambda place: {}
    ),
    "memory.tryWebhook": Row(GOVERNORS, 202, ids={"webhook_id": webhook}, body=lambda place: {}),
    "memory.listWebhookDeliveries": Row(GOVERNORS, ids={"webhook_id": webhook}),
    "memory.replayWebhook": Row(
        GOVERNORS,
        202,
        ids={"webhook_id": webhook},
        body=lambda place: {"from": "2026-01-31T00:00:00Z", "until": "2026-02-01T00:00:00Z"},
    ),
}

# What a secret is called in the one answer that has it; a repeat goes without.
SHOWN_ONCE = {
    "memory.createKey": "token",
    "memory.rotateKey": "token",
    "memory.registerWebhook": "secret",
    "memory.rotateWebhookSecret": "secret",
}
