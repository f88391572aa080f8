"""Acts that speak for a person without their word: kept whole for whoever decides, changing nothing until then."""

from typing import Any, Literal

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
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
    fact_id: str | None = None,
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
        "fact": fact_id,
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
            "AND record_id IS NOT DISTINCT FROM %(record)s::text AND fact_id IS NOT DISTINCT FROM %(fact)s::text "
            "AND key IS NOT DISTINCT FROM %(key)s::text "
            "AND subject_id IS NOT DISTINCT FROM %(subject)s::text "
            "AND body_text = %(body)s::text AND asked_by = %(by)s::text LIMIT 1",
            given,
        )
        row = cursor.fetchone()
        if row is not None:
            return str(row[0])
        cursor.execute(
            "INSERT INTO pending_act (tenant_id, id, act, record_id, fact_id, subject_type, subject_id, key, body_text, "
            "reason_code, asked_by, asked_by_role, asked_at) "
            "VALUES (%(tenant)s::uuid, %(id)s::text, %(act)s::text, %(record)s::text, %(fact)s::text, "
            "%(subject_type)s::text, %(subject)s::text, %(key)s::text, %(body)s::text, %(reason)s::text, %(by)s::text, "
            "%(role)s::text, %(at)s::timestamptz)",
            given,
        )
    payload = {"act": name, "pendingId": given["id"], "reason": reason_code}
    if fact_id is not None:
        append_governance(
            principal=act.principal,
            payload={"type": "fact.proposed", "factId": fact_id, **payload},
        )
    else:
        act.log(recordId=record_id, **payload)
    return str(given["id"])


def decide(
    principal: Principal, pending_id: str, decision: Literal["approved", "rejected"]
) -> bool:
    """Take an act out of the queue; its body goes. False when somebody was first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pending_act SET body_text = NULL, decision = %(decision)s::text, decided_at = clock_timestamp(), "
            "decided_by = %(by)s::text WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::text AND decided_at IS NULL",
            {
                "tenant": principal.tenant_id,
                "id": pending_id,
                "decision": decision,
                "by": principal.writer,
            },
        )
        return cursor.rowcount == 1
