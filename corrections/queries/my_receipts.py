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
    after_ids: list[str]


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
            "SELECT p.number, p.route, p.record_id, r.key, p.scope_text, p.made_at, p.undo_until, p.undone_at, p.after_ids "
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an act did, and what of it stands. `has_ended`: the act ended the memory that the receipt is of; `along`: so many more
    of the person's ended, or were set aside or disputed with it; `versions`: earlier ones that went, too; `is_in_use`: what came
    of it is still what agents use; `is_sealed`: a legal hold keeps a sealed copy of what it is about; `undid`: the route of the
    receipt that it undid.
    """

    has_ended: bool
    along: int
    versions: int
    is_in_use: bool
    is_sealed: bool
    undid: str | None


_OUTCOME = """
SELECT coalesce(bool_or(a.record_id = %(record)s::text AND a.to_status <> 'active'), false),
       count(*) FILTER (WHERE a.is_other AND (a.to_status = 'expired' OR a.to_status = 'deleted' AND a.from_status = 'active'
                                              OR %(marks)s::bool AND a.to_status = 'active')),
       count(*) FILTER (WHERE a.is_other AND a.to_status = 'deleted' AND a.from_status <> 'active'),
       EXISTS (SELECT FROM memory_record n WHERE n.tenant_id = %(tenant)s::uuid AND n.id = %(after)s::text
               AND n.status = 'active' AND n.review IS NULL),
       EXISTS (SELECT FROM sealed_copy s WHERE s.tenant_id = %(tenant)s::uuid AND s.purpose = 'hold'
               AND s.record_id = ANY(%(ids)s::text[])),
       (SELECT p.route FROM receipt p WHERE p.tenant_id = %(tenant)s::uuid AND p.undone_by = %(number)s::text)
FROM (
  SELECT o.record_id, o.from_status, o.to_status, o.record_id <> %(record)s::text AND NOT o.is_main
         AND r.subject_type = 'user' AND r.subject_id = %(subject)s::text AS is_other
  FROM record_act o JOIN memory_record r ON r.tenant_id = o.tenant_id AND r.id = o.record_id
  WHERE o.tenant_id = %(tenant)s::uuid AND o.act_id = %(act)s::uuid
) a
"""


def outcome_of(principal: Principal, receipt: Receipt) -> Outcome:
    """Read now, of what the person may read."""
    named = {
        "tenant": principal.tenant_id,
        "subject": principal.subject,
        "act": receipt.act_id,
        "record": receipt.record_id,
        "after": receipt.after_ids[0] if receipt.after_ids else None,
        "ids": [receipt.record_id, *receipt.before_ids],
        "marks": receipt.route in ("wrong-person", "dispute"),
        "number": receipt.number,
    }
    with connection.cursor() as cursor:
        cursor.execute(_OUTCOME, named)
        return Outcome(*cursor.fetchone())
