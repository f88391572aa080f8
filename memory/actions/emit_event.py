"""Something happened: every active record that listens for it, that the key may write, and whose case it is, expires.

An event's bindings and a record's agree when they say the same on each key both have; an event that names a subject
of a record's type is about that subject only. An agent's event must name a case, and reaches only what is of it: what
shares a binding with it, or is about the subject that it names.
"""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.canonical import canonical
from memory.erasure.progress import check_none_erases_of
from memory.errors import BadInput, InvariantViolated, PermissionDenied
from memory.records.acts import Act, ended
from memory.records.bindings import check_scalars
from memory.records.ending import expire
from memory.records.guard import record_guard
from memory.trust.instructions import reads_like_instruction

_LISTENING = """
SELECT r.id FROM record_listener l JOIN memory_record r ON r.tenant_id = l.tenant_id AND r.id = l.record_id
WHERE l.tenant_id = %(tenant)s::uuid AND l.event_type = %(type)s::text AND r.status = 'active' AND r.review IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM jsonb_each(r.bindings) b WHERE %(event)s::jsonb ? b.key AND %(event)s::jsonb -> b.key <> b.value)
  AND (NOT %(event)s::jsonb ? (r.subject_type || '_id')
       OR %(event)s::jsonb -> (r.subject_type || '_id') = to_jsonb(r.subject_id))
  AND (%(reaches_all)s::bool OR %(event)s::jsonb ? (r.subject_type || '_id')
       OR EXISTS (SELECT 1 FROM jsonb_object_keys(r.bindings) b WHERE %(event)s::jsonb ? b))
"""


def emit_event(*, principal: Principal, type: str, bindings: Mapping[str, Any]) -> list[str]:
    """The ids of the records that expired, those derived from them included, as far as the caller may read them.

    Raises PermissionDenied, BadInput, InvariantViolated, ErasureInProgress.
    """
    principal.needs("emit")
    if principal.role == "auditor":
        raise PermissionDenied(needs="a role that writes")
    check_scalars(bindings, "")
    if "\x00" in type:
        raise BadInput.at("/type", "must not hold U+0000")
    if principal.is_agent and not bindings:
        raise InvariantViolated(invariant="event-names-a-case")
    check_none_erases_of(principal.tenant_id, "", "", bindings)
    act = Act(principal, "expired")
    rule, parameters = record_guard(principal)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_LISTENING} AND {rule} ORDER BY r.id",
            {
                "tenant": principal.tenant_id,
                "type": type,
                "event": canonical(dict(bindings)),
                "reaches_all": not principal.is_agent,
                **parameters,
            },
        )
        listening = [row[0] for row in cursor.fetchall()]
    endings = expire(principal.tenant_id, listening, act.at) if listening else []
    ids = [one.id for one in endings]
    entry = act.log(reason="event", **_named(act, type), recordIds=ids, recordCount=len(ids))
    if endings:
        act.keep(ended(endings, "expired"), entry, reason_code="event")
    return [one.id for one in endings if one.review is None and one.is_readable_by(principal)]


def _named(act: Act, type: str) -> dict[str, str | None]:
    """The event as the log names it. An agent's name for it that reads like an instruction is kept from who reads the log."""
    if act.principal.is_agent and reads_like_instruction(type):
        return {"eventDigest": act.digest(type)}
    return {"event": type}
