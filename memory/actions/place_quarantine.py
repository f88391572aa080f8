"""Take all that one key or one run wrote since a time out of use, at once: no read finds it until it is lifted or rolled back.

Nothing is destroyed, so what a legal hold keeps is taken out of use as well. One transaction, or nothing.
"""

from datetime import UTC, datetime

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.endings import write_down_after_commit
from memory.errors import NothingToQuarantine
from memory.quarantines import QuarantineView, Selector, Suspect, find_quarantine, suspects
from memory.records.acts import Act, ended
from memory.records.ending import descendants, withhold
from memory.records.store import update_records

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_INSERT = """
INSERT INTO quarantine (tenant_id, id, selector, selector_id, since, reason, placed_by, placed_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(selector)s::text, %(selector_id)s::text, %(since)s::timestamptz, %(reason)s::text,
        %(by)s::text, %(at)s::timestamptz)
"""
_ITEMS = """
INSERT INTO quarantine_item (tenant_id, quarantine_id, kind, item_id)
SELECT %(tenant)s::uuid, %(id)s::uuid, i.kind, i.id FROM unnest(%(kinds)s::text[], %(ids)s::text[]) AS i (kind, id)
"""
_LOCK_FACTS = """
SELECT id FROM fact WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[]) AND review IS NULL AND deleted_at IS NULL
ORDER BY id FOR UPDATE
"""
_SET_ASIDE = """
UPDATE fact SET review = 'quarantined' WHERE tenant_id = %(tenant)s::uuid AND id = ANY(%(ids)s::text[])
"""
_WITHHOLD = """
UPDATE idempotency_key SET answer = NULL, withheld_at = now()
WHERE tenant_id = %(tenant)s::uuid AND item_ref = ANY(%(refs)s::text[]) AND withheld_at IS NULL
"""


def place_quarantine(*, principal: Principal, selector: Selector, reason: str) -> QuarantineView:
    """The quarantine as placed. Raises PermissionDenied, NothingToQuarantine."""
    principal.needs_role("admin", "owner")
    tenant_id = principal.tenant_id
    act = Act(principal, "quarantined")
    found = suspects(tenant_id, selector)
    records = [
        one
        for one in descendants(tenant_id, *(one.id for one in found if one.kind == "record"))
        if one.review is None
    ]
    facts = _locked(principal, [one for one in found if one.kind == "fact"])
    # Looked at again under the locks: what somebody changed meanwhile is theirs.
    still = {(one.kind, one.id) for one in suspects(tenant_id, selector)}
    records = [one for one in records if ("record", one.id) in still]
    facts = [one for one in facts if ("fact", one) in still]
    if not records and not facts:
        raise NothingToQuarantine
    ids = [one.id for one in records]
    update_records(tenant_id, ids, act.at, review="quarantined", review_reason=selector.kind)
    withhold(tenant_id, ids, act.at)
    with connection.cursor() as cursor:
        cursor.execute(_SET_ASIDE, {"tenant": tenant_id, "ids": facts})
        cursor.execute(_WITHHOLD, {"tenant": tenant_id, "refs": [f"fact:{one}" for one in facts]})
        cursor.execute(
            _INSERT,
            {
                "tenant": tenant_id,
                "id": act.id,
                "selector": selector.kind,
                "selector_id": selector.id,
                "since": selector.since or _EVER,
                "reason": reason,
                "by": principal.writer,
                "at": act.at,
            },
        )
        cursor.execute(
            _ITEMS,
            {
                "tenant": tenant_id,
                "id": act.id,
                "kinds": [*("record" for _ in ids), *("fact" for _ in facts)],
                "ids": [*ids, *facts],
            },
        )
    write_down_after_commit(tenant_id)
    entry = append_governance(
        principal=principal,
        payload={
            "type": "quarantine.placed",
            "quarantineId": str(act.id),
            selector.kind: selector.id,
            "records": len(ids),
            "facts": len(facts),
        },
    )
    if records:
        act.keep(ended(records, "active"), entry, reason_code="quarantined")
    return find_quarantine(tenant_id, str(act.id))


def _locked(principal: Principal, found: list[Suspect]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            _LOCK_FACTS, {"tenant": principal.tenant_id, "ids": [one.id for one in found]}
        )
        return [row[0] for row in cursor.fetchall()]
