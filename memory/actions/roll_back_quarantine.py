"""Roll a quarantine back: what it took out of use ends, and what those writes superseded is served again.

In batches, each thing by itself: called again it goes on where it stopped. A held record is sealed as when it is forgotten; a
held fact stays as it is, out of use, until no hold keeps it any more: then it is rolled back too.
"""

import json
from dataclasses import replace
from typing import Any, Final

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.discard_fact import discard_fact
from memory.actions.write_fact import index_plan, indexed
from memory.errors import LegalHoldActive, QuarantineClosed, ReviewNotFound
from memory.fact_head import lock_fact
from memory.fact_rows import RevisionRow, insert_revision
from memory.fact_shape import SealedContent
from memory.log_entry import ABSENT
from memory.quarantines import (
    QuarantineView,
    Suspect,
    find_quarantine,
    free_to_roll_back,
    last_good_version,
    mark_items,
    mark_quarantine,
    quarantined,
)
from memory.queries.facts import fact_version
from memory.records.acts import Act, Touched, ended, scope_of
from memory.records.rejecting import discard
from memory.records.restoring import restore_superseded
from memory.records.store import find_record, lock_thing, update_records
from memory.tenancy import tenant_context
from memory.write_policy import write_policy

MOST_AT_ONCE: Final = 200


def roll_back_quarantine(
    *, principal: Principal, quarantine_id: str, most: int = MOST_AT_ONCE
) -> QuarantineView:
    """The quarantine after at most `most` things more; `rolled-back` when none is left.

    Raises PermissionDenied, QuarantineNotFound, QuarantineClosed.
    """
    principal.needs_role("admin", "owner")
    with tenant_context(principal.tenant_id):
        view = find_quarantine(principal.tenant_id, quarantine_id, lock=True)
        if view.status not in ("active", "rolling-back"):
            raise QuarantineClosed(status=view.status)
        mark_quarantine(principal.tenant_id, view.id, "rolling-back")
        left = quarantined(principal.tenant_id, view.id, only_left=True, limit=most)
    for one in left:
        with tenant_context(principal.tenant_id):
            _roll_back(principal, view, one)
    with tenant_context(principal.tenant_id):
        after = find_quarantine(principal.tenant_id, quarantine_id, lock=True)
        if after.left == 0 and after.status == "rolling-back":
            mark_quarantine(principal.tenant_id, view.id, "rolled-back", by=principal.writer)
            append_governance(
                principal=principal,
                payload={"type": "quarantine.rolled-back", "quarantineId": str(view.id)},
            )
        return find_quarantine(principal.tenant_id, quarantine_id)


def roll_back_freed(*, principal: Principal, most: int = MOST_AT_ONCE) -> bool:
    """Roll back facts that a hold kept from it and no hold keeps now; whether there may be more.

    Opens its own transactions; call it outside any.
    """
    with tenant_context(principal.tenant_id):
        freed = free_to_roll_back(principal.tenant_id, limit=most)
    for quarantine_id, one in freed:
        with tenant_context(principal.tenant_id):
            _roll_back(principal, find_quarantine(principal.tenant_id, str(quarantine_id)), one)
    return len(freed) == most


def _roll_back(principal: Principal, view: QuarantineView, one: Suspect) -> None:
    if one.kind == "record":
        _record(principal, view, one.id)
        return
    try:
        with tenant_context(principal.tenant_id):
            outcome = _fact(principal, view, one.id)
    except LegalHoldActive:
        outcome = "held"
    except ReviewNotFound:
        outcome = "gone"
    mark_items(principal.tenant_id, view.id, "fact", [one.id], outcome)


def _record(principal: Principal, view: QuarantineView, record_id: str) -> None:
    tenant_id = principal.tenant_id
    act = Act(principal, "rolled-back")
    record = find_record(tenant_id, record_id)
    if record is not None:
        lock_thing(tenant_id, record.subject_type, record.subject_id, record.key)
        record = find_record(tenant_id, record_id)
    if record is None or record.review != "quarantined" or record.status != "active":
        mark_items(tenant_id, view.id, "record", [record_id], "gone")
        return
    endings = discard(tenant_id, [record_id], act.at, reason="rolled-back")
    restored = restore_superseded(act, view.names, record)
    # It was served once: its tombstone is read like any other's. What only waited stays unseen.
    seen = [one.id for one in endings if one.review == "quarantined"]
    update_records(tenant_id, seen, act.at, review=None, review_reason=None)
    entry = act.log(
        recordId=record_id,
        quarantineId=str(view.id),
        recordIds=[one.id for one in endings],
        restored={old.id: new for old, new in restored} or None,
        held=[one.id for one in endings if one.is_held],
    )
    rows = [
        *ended(endings, "deleted"),
        *(
            Touched(new, "active", scope_of(old), from_record_id=old.id, is_main=True)
            for old, new in restored
        ),
    ]
    act.keep(rows, entry, reason_code="rolled-back")
    others = [one.id for one in endings if one.id != record_id]
    mark_items(tenant_id, view.id, "record", others, "removed")
    new_id = restored[0][1] if restored else None
    outcome = "restored" if restored else "removed"
    mark_items(tenant_id, view.id, "record", [record_id], outcome, restored_id=new_id)


def _content(text: str | None) -> Any:
    return ABSENT if text is None else json.loads(text)


def _fact(principal: Principal, view: QuarantineView, fact_id: str) -> str:
    """What became of it. Raises LegalHoldActive, ReviewNotFound."""
    version = last_good_version(principal.tenant_id, view.names, fact_id)
    if version is None:
        discard_fact(principal=principal, fact_id=fact_id, review="quarantined")
        return "removed"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE fact SET review = NULL WHERE tenant_id = %s::uuid AND id = %s::text AND review = 'quarantined' "
            "AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp())",
            [principal.tenant_id, fact_id],
        )
        if cursor.rowcount == 0:
            raise ReviewNotFound
    # Who rolls back what is wide needs no grant of its own to do it.
    decider = replace(principal, abilities=principal.abilities | {"tenant-wide"})
    current = lock_fact(decider, fact_id, expect_version=None)
    if current.is_held:
        raise LegalHoldActive(ids=[fact_id])
    good = fact_version(decider, fact_id, version)
    policy = write_policy(principal.tenant_id, good.type)
    plan = index_plan(principal, policy, _content(good.content_text))
    fact = insert_revision(
        principal=principal,
        replaced=current,
        row=RevisionRow(
            content=SealedContent(
                good.content_text, good.content_hash, good.size_bytes, good.content_ref
            ),
            retention=current.retention,
            source=good.source,
            causes=good.cause_ids,
            subjects=good.subjects,
            valid_from=good.valid_from,
            valid_until=good.valid_until,
            observed_at=good.observed_at,
            trust=good.trust,
            verified_by=good.verified_by,
            attributed_kind=good.attributed_kind,
            attributed_id=good.attributed_id,
            generated_run_id=good.generated_run_id,
            words=plan.words if plan else None,
        ),
        policy=policy,
    )
    indexed(principal, fact, plan)
    append_governance(
        principal=principal,
        payload={
            "type": "fact.rolled-back",
            "factId": fact_id,
            "version": fact.version,
            "quarantineId": str(view.id),
        },
    )
    return "restored"
