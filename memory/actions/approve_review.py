"""Approve what waits: a proposed record or fact is used from now on, an act is done, a complaint is upheld.

The rules are those of a person's act now, not of the day it was proposed: what changed meanwhile is told with the difference.
Source: the product contract, "Trust and poisoning".
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.act_on_route import Form, act_on_route
from memory.actions.append_log_entries import append_governance
from memory.actions.confirm_record import confirm_record
from memory.actions.correct import correct
from memory.actions.delete_fact import delete_fact
from memory.actions.forget_record import forget_record
from memory.actions.supersede_fact import supersede_fact
from memory.actions.undo_receipt import undo_receipt
from memory.api.schemas_facts import change_of
from memory.errors import FactChanged, ReviewNotFound
from memory.instants import day
from memory.queries.recall_candidates import Subject
from memory.queries.reviews import ReviewItem, find_review
from memory.records.acts import Act
from memory.records.admitting import admit_record
from memory.records.bindings import read_context
from memory.records.complaints import complaint, uphold
from memory.records.correction_target import Correction
from memory.records.pending import decide
from memory.records.store import find_record, lock_lineage
from memory.records.upcoming import lock_thing_today

REVIEWERS = ("admin", "owner")


def approve_review(
    *, principal: Principal, kind: str, item_id: str, expect: str | None = None
) -> None:
    """Let it take effect. `expect`: what the caller saw that would end; see review_effect.

    Raises ReviewNotFound, PermissionDenied, and what the act itself raises.
    """
    principal.needs_role(*REVIEWERS)
    item = find_review(principal, kind, item_id)
    _APPROVE[item.kind](principal, item, expect)


def _record(principal: Principal, item: ReviewItem, expect: str | None) -> None:
    tenant_id = principal.tenant_id
    lock_thing_today(principal, str(item.subject_type), str(item.subject_id), str(item.name))
    record = find_record(tenant_id, item.id)
    if record is None or record.status != "active" or record.review != "pending":
        raise ReviewNotFound
    lock_lineage(tenant_id, record.id, record.derived_from)
    admit_record(Act(principal, "approved"), item, record, expect)


def _fact(principal: Principal, item: ReviewItem, expect: str | None) -> None:
    """Nothing ends with it: who says that they saw something else has looked at something else."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE fact SET review = NULL, review_reason = NULL WHERE tenant_id = %s::uuid AND id = %s::text "
            "AND review = 'pending' AND deleted_at IS NULL RETURNING current_version",
            [principal.tenant_id, item.id],
        )
        row = cursor.fetchone()
    if row is None:
        raise ReviewNotFound
    if expect and expect != str(row[0]):
        raise FactChanged(fact_id=item.id, current_version=row[0])
    append_governance(
        principal=principal,
        payload={"type": "fact.approved", "factId": item.id, "reason": item.reason},
    )


def _complaint(principal: Principal, item: ReviewItem, expect: str | None) -> None:
    act = Act(principal, "settled")
    uphold(act, *complaint(act, item.id))


def _act(principal: Principal, item: ReviewItem, expect: str | None) -> None:
    # First, so that an act that clears what waits about its record doesn't meet itself.
    if not decide(principal, item.id, "approved"):
        raise ReviewNotFound
    said = json.loads(item.said or "{}")
    if item.act in ("supersede", "delete"):
        _change_fact(principal, item, said, expect)
    else:
        _ACTS.get(str(item.act), _by_route)(principal, item, said)
    append_governance(
        principal=principal,
        payload={"type": "review.approved", "pendingId": item.id, "act": item.act},
    )


def _change_fact(
    principal: Principal, item: ReviewItem, said: dict[str, Any], expect: str | None
) -> None:
    seen = said.pop("expectVersion", None)
    if expect:
        if not expect.isdecimal():
            raise FactChanged(fact_id=str(item.fact_id), current_version=int(seen or 0))
        seen = int(expect)
    # Who decides what is wide needs no grant of its own to do it.
    decider = replace(principal, abilities=principal.abilities | {"tenant-wide"})
    fact_id = str(item.fact_id)
    if item.act == "delete":
        delete_fact(principal=decider, fact_id=fact_id, expect_version=seen)
        return
    supersede_fact(principal=decider, fact_id=fact_id, change=change_of(said), expect_version=seen)


def _correct(principal: Principal, item: ReviewItem, said: dict[str, Any]) -> None:
    evidence = said.get("evidence")
    asked = Correction(
        new_value=said["new_value"],
        context=read_context(said["context"]),
        key=said.get("key"),
        record_id=item.record_id or said.get("record_id"),
        subject=Subject(str(item.subject_type), str(item.subject_id)),
        broaden=said.get("broaden", False),
        evidence=(evidence[0], evidence[1]) if evidence else None,
        reason=said.get("reason"),
        route=said.get("route", "fix-value"),
    )
    correct(principal=principal, asked=asked)


def _confirm(principal: Principal, item: ReviewItem, said: dict[str, Any]) -> None:
    confirm_record(
        principal=principal, record_id=str(item.record_id), broaden_to=said.get("broaden_to")
    )


def _forget(principal: Principal, item: ReviewItem, said: dict[str, Any]) -> None:
    forget_record(
        principal=principal,
        record_id=str(item.record_id),
        reason=said.get("reason"),
        with_undo=True,
    )


def _undo(principal: Principal, item: ReviewItem, said: dict[str, Any]) -> None:
    undo_receipt(principal=principal, number=said["number"])


def _by_route(principal: Principal, item: ReviewItem, said: dict[str, Any]) -> None:
    given = {name: value for name, value in said.items() if name not in ("reason", "evidence")}
    if given.get("since") is not None:
        given["since"] = day(given["since"])
    act_on_route(
        principal=principal,
        record_id=str(item.record_id),
        name=str(item.act),
        form=Form(fields=given, reason=said.get("reason")),
    )


_ACTS: Mapping[str, Callable[[Principal, ReviewItem, dict[str, Any]], None]] = {
    "correct": _correct,
    "confirm": _confirm,
    "forget": _forget,
    "undo": _undo,
}
_APPROVE: Mapping[str, Callable[[Principal, ReviewItem, str | None], None]] = {
    "record": _record,
    "fact": _fact,
    "act": _act,
    "withdrawal": _complaint,
    "dispute": _complaint,
}
