"""What becomes of a person's complaint about a record: "not about me", or "I disagree". An admin decides.

Upheld, what the complaint set aside or disputed ends, with what was derived from it. Dismissed, it is used as before; what the
complaint forbade to be written back is allowed again.
"""

from django.db import connection

from memory.errors import RecordChanged, ReviewNotFound
from memory.records.acts import Act, Touched, ended, scope_of, with_main
from memory.records.ending import Ending, drop_fingerprints, expire
from memory.records.receipts import Receipt, find_receipt
from memory.records.record import Record
from memory.records.rejecting import discard
from memory.records.slot import other_in_slot_of
from memory.records.store import (
    find_record,
    find_records,
    update_records,
)
from memory.records.upcoming import lock_thing_today
from memory.records.words_searched import index_record


def complaint(act: Act, number: str) -> tuple[Receipt, Record]:
    """The receipt of a complaint and its record, under the locks of both. Raises ReviewNotFound."""
    receipt = find_receipt(act.tenant_id, number, lock=True)
    record = find_record(act.tenant_id, receipt.record_id) if receipt is not None else None
    if receipt is None or record is None:
        raise ReviewNotFound
    lock_thing_today(act.principal, record.subject_type, record.subject_id, record.key)
    record = find_record(act.tenant_id, record.id) or record
    return receipt, record


def uphold(act: Act, receipt: Receipt, record: Record) -> None:
    """The person is right: it ends."""
    touched = _touched(act, receipt)
    endings: list[Ending]
    if receipt.route == "wrong-person":
        ids = [one.id for one in touched if one.review == "withdrawn"]
        endings, to_status = discard(act.tenant_id, ids, act.at, reason="wrong-person"), "deleted"
    else:
        endings, to_status = expire(act.tenant_id, [record.id], act.at), "expired"
    if not endings:
        raise ReviewNotFound
    entry = act.log(
        recordId=record.id,
        receipt=receipt.number,
        decision="approved",
        recordIds=[one.id for one in endings],
    )
    act.keep(with_main(ended(endings, to_status), record.id), entry, reason_code="approved")


def dismiss(act: Act, receipt: Receipt, record: Record) -> None:
    """It stays in use. Raises ReviewNotFound, RecordChanged when something else took its place meanwhile."""
    touched = _touched(act, receipt)
    if receipt.route == "wrong-person":
        found = [one for one in touched if one.review == "withdrawn"]
        for one in found:
            _check_slot_is_free(act, one)
        changes = {"review": None, "review_reason": None}
    else:
        found = [one for one in touched if one.disputed_at == receipt.made_at]
        changes = {"disputed_at": None}
    if not found:
        raise ReviewNotFound
    ids = [one.id for one in found]
    update_records(act.tenant_id, ids, act.at, **changes)
    drop_fingerprints(act.tenant_id, receipt.number)
    if receipt.route == "wrong-person":
        for one in found:
            index_record(act.tenant_id, one, act.principal.search_language)
    entry = act.log(recordId=record.id, receipt=receipt.number, decision="rejected", recordIds=ids)
    rows = [Touched(one.id, "active", scope_of(one), from_status="active") for one in found]
    act.keep(with_main(rows, record.id), entry, reason_code="rejected")


def _touched(act: Act, receipt: Receipt) -> list[Record]:
    """The records that the complaint touched and that are still active."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT record_id FROM record_act WHERE tenant_id = %s::uuid AND act_id = %s::uuid",
            [act.tenant_id, receipt.act_id],
        )
        ids = [row[0] for row in cursor.fetchall()]
    return find_records(
        act.tenant_id, "r.id = ANY(%(ids)s::text[]) AND r.status = 'active'", {"ids": ids}
    )


def _check_slot_is_free(act: Act, record: Record) -> None:
    occupant = other_in_slot_of(act.tenant_id, record)
    if occupant is not None:
        raise RecordChanged(
            active_id=occupant.id,
            expected_id=record.id,
            differs=["value"],
            current=occupant.wire(),
        )
