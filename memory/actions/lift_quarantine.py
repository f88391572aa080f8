"""Lift a quarantine: what it took out of use is served again, as it was.

A record whose place somebody filled meanwhile stays out of use: it was replaced. What expired or was forgotten stays so.
"""

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import QuarantineClosed
from memory.quarantines import QuarantineView, find_quarantine, mark_items, mark_quarantine
from memory.records.acts import Act, Touched, scope_of
from memory.records.record import Record
from memory.records.slot import other_in_slot_of
from memory.records.store import find_records, update_records
from memory.records.words_searched import index_record

_ITEMS = "SELECT kind, item_id FROM quarantine_item WHERE tenant_id = %s::uuid AND quarantine_id = %s::uuid AND outcome IS NULL"
_SERVE_FACTS = """
UPDATE fact SET review = NULL WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[]) AND review = 'quarantined'
RETURNING id
"""
_REPLACED = """
INSERT INTO record_supersession (tenant_id, superseded_id, successor_id, superseded_at)
SELECT %(tenant)s::uuid, p.o, p.n, %(at)s::timestamptz FROM unnest(%(olds)s::text[], %(news)s::text[]) AS p (o, n)
ON CONFLICT ON CONSTRAINT record_supersession_one_successor DO NOTHING
"""


def lift_quarantine(*, principal: Principal, quarantine_id: str) -> QuarantineView:
    """The quarantine as it ended. Raises PermissionDenied, QuarantineNotFound, QuarantineClosed."""
    principal.needs_role("admin", "owner")
    tenant_id = principal.tenant_id
    view = find_quarantine(tenant_id, quarantine_id, lock=True)
    if view.status != "active":
        raise QuarantineClosed(status=view.status)
    act = Act(principal, "requalified")
    with connection.cursor() as cursor:
        cursor.execute(_ITEMS, [tenant_id, view.id])
        items = cursor.fetchall()
    touched = _serve_records(act, view, [item for kind, item in items if kind == "record"])
    _serve_facts(act, view, [item for kind, item in items if kind == "fact"])
    mark_quarantine(tenant_id, view.id, "lifted", by=principal.writer)
    entry = append_governance(
        principal=principal,
        payload={"type": "quarantine.lifted", "quarantineId": str(view.id)},
    )
    if touched:
        act.keep(touched, entry, reason_code="quarantine-lifted")
    return find_quarantine(tenant_id, quarantine_id)


def _serve_records(act: Act, view: QuarantineView, ids: list[str]) -> list[Touched]:
    tenant_id = act.tenant_id
    found = find_records(
        tenant_id, "r.id = ANY(%(ids)s::text[]) AND r.review = 'quarantined'", {"ids": ids}
    )
    active = [one for one in found if one.status == "active"]
    replaced = {one.id: other for one in active if (other := _in_its_place(act, one)) is not None}
    back = [one for one in active if one.id not in replaced]
    served = {"review": None, "review_reason": None}
    update_records(tenant_id, [one.id for one in back], act.at, **served)
    for one in back:
        index_record(tenant_id, one, act.principal.search_language)
    update_records(
        tenant_id, list(replaced), act.at, status="superseded", ended_at=act.at, **served
    )
    # Tombstones and what expired are history again, for who may read it.
    past = [one.id for one in found if one.status != "active"]
    update_records(tenant_id, past, act.at, **served)
    with connection.cursor() as cursor:
        cursor.execute(
            _REPLACED,
            {
                "tenant": tenant_id,
                "at": act.at,
                "olds": list(replaced),
                "news": list(replaced.values()),
            },
        )
    mark_items(tenant_id, view.id, "record", ids, "gone")
    mark_items(tenant_id, view.id, "record", [one.id for one in back], "lifted")
    mark_items(tenant_id, view.id, "record", list(replaced), "replaced")
    return [
        Touched(
            one.id,
            "superseded" if one.id in replaced else "active",
            scope_of(one),
            from_status="active",
        )
        for one in active
    ]


def _in_its_place(act: Act, record: Record) -> str | None:
    occupant = other_in_slot_of(act.tenant_id, record)
    return occupant.id if occupant is not None else None


def _serve_facts(act: Act, view: QuarantineView, ids: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SERVE_FACTS, {"tenant": act.tenant_id, "ids": ids})
        back = [row[0] for row in cursor.fetchall()]
    mark_items(act.tenant_id, view.id, "fact", ids, "gone")
    mark_items(act.tenant_id, view.id, "fact", back, "lifted")
