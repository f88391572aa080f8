"""Acts that speak for a person without their word: kept whole for whoever decides, changing nothing until then."""

from typing import Any

from django.db import connection

from memory.canonical import canonical
from memory.ids import new_text_id
from memory.records.acts import Act


def put_off(
    act: Act,
    *,
    name: str,
    body: dict[str, Any],
    reason_code: str,
    record_id: str | None = None,
    subject: tuple[str, str] | None = None,
    key: str | None = None,
) -> str:
    """Keep the act; the id under which it waits. The same act asked again by the same caller is the first one."""
    text = canonical(body)
    given: dict[str, Any] = {
        "tenant": act.tenant_id,
        "id": new_text_id(),
        "act": name,
        "record": record_id,
        "subject_type": subject[0] if subject else None,
        "subject": subject[1] if subject else None,
        "key": key,
        "body": text,
        "reason": reason_code,
        "by": act.principal.writer,
        "role": act.principal.role,
        "at": act.at,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM pending_act WHERE tenant_id = %(tenant)s::uuid AND decided_at IS NULL AND act = %(act)s::text "
            "AND record_id IS NOT DISTINCT FROM %(record)s::text AND key IS NOT DISTINCT FROM %(key)s::text "
            "AND subject_id IS NOT DISTINCT FROM %(subject)s::text "
            "AND body_text = %(body)s::text AND asked_by = %(by)s::text LIMIT 1",
            given,
        )
        row = cursor.fetchone()
        if row is not None:
            return str(row[0])
        cursor.execute(
            "INSERT INTO pending_act (tenant_id, id, act, record_id, subject_type, subject_id, key, body_text, reason_code, "
            "asked_by, asked_by_role, asked_at) VALUES (%(tenant)s::uuid, %(id)s::text, %(act)s::text, %(record)s::text, "
            "%(subject_type)s::text, %(subject)s::text, %(key)s::text, %(body)s::text, %(reason)s::text, %(by)s::text, "
            "%(role)s::text, %(at)s::timestamptz)",
            given,
        )
    act.log(act=name, pendingId=given["id"], recordId=record_id, reason=reason_code)
    return str(given["id"])
