"""The receipts of acts on what is remembered about one person, newest first; and one with the values that are still there."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from memory.access import Principal
from memory.errors import ReceiptNotFound
from memory.records.receipts import Receipt, find_receipt


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    number: str
    route: str
    record_id: str
    key: str
    scope_text: str
    made_at: datetime
    undo_until: datetime | None
    undone_at: datetime | None


MY_RECEIPTS = """
FROM receipt p JOIN memory_record r ON r.tenant_id = p.tenant_id AND r.id = p.record_id
WHERE p.tenant_id = %(tenant)s::uuid AND r.subject_type = 'user' AND r.subject_id = %(subject)s::text
"""


def my_receipts(
    principal: Principal, *, before: tuple[datetime, str] | None = None, limit: int
) -> list[ReceiptLine]:
    """At most `limit`, newest first."""
    where = ""
    if before is not None:
        where = " AND (p.made_at, p.number) < (%(at)s::timestamptz, %(number)s::text)"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.number, p.route, p.record_id, r.key, p.scope_text, p.made_at, p.undo_until, p.undone_at "
            f"{MY_RECEIPTS}{where} ORDER BY p.made_at DESC, p.number DESC LIMIT %(limit)s::int",
            {
                "tenant": principal.tenant_id,
                "subject": principal.subject,
                "at": before[0] if before else None,
                "number": before[1] if before else None,
                "limit": limit,
            },
        )
        return [ReceiptLine(*row) for row in cursor.fetchall()]


def my_receipt(principal: Principal, number: str) -> tuple[Receipt, str]:
    """The receipt and the key it is about. Raises ReceiptNotFound, also for another person's."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT r.key {MY_RECEIPTS} AND p.number = %(number)s::text",
            {"tenant": principal.tenant_id, "subject": principal.subject, "number": number},
        )
        row = cursor.fetchone()
    receipt = find_receipt(principal.tenant_id, number) if row is not None else None
    if row is None or receipt is None:
        raise ReceiptNotFound
    return receipt, row[0]


def fell_with(principal: Principal, receipt: Receipt) -> int:
    """How many memories about the person ended together with the one that a receipt is of."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM record_act a JOIN memory_record r ON r.tenant_id = a.tenant_id AND r.id = a.record_id "
            "WHERE a.tenant_id = %(tenant)s::uuid AND a.act_id = %(act)s::uuid AND a.record_id <> %(record)s::text "
            "AND NOT a.is_main AND a.to_status IN ('expired', 'deleted') "
            "AND r.subject_type = 'user' AND r.subject_id = %(subject)s::text",
            {
                "tenant": principal.tenant_id,
                "act": receipt.act_id,
                "record": receipt.record_id,
                "subject": principal.subject,
            },
        )
        return int(cursor.fetchone()[0])


def is_kept_sealed(principal: Principal, receipt: Receipt) -> bool:
    """Whether a legal hold keeps a sealed copy of what the receipt is about."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM sealed_copy s WHERE s.tenant_id = %(tenant)s::uuid AND s.purpose = 'hold' "
            "AND s.record_id = ANY(%(ids)s::text[]))",
            {"tenant": principal.tenant_id, "ids": [receipt.record_id, *receipt.before_ids]},
        )
        return bool(cursor.fetchone()[0])
