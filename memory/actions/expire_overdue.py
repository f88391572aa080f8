"""Expire what is past its last day though nobody recalled it: what is sensitive must not wait for a question to lose its value.
And let what begins today take its place.

Recall does both to what it meets; this is the worker's round over the rest, in batches that stand alone.
"""

from django.db import connection

from memory.access import Principal
from memory.queries.records import today_of
from memory.records.acts import Act, ended
from memory.records.ending import Ending, drop_values, expire
from memory.records.upcoming import begun_things, lock_thing_today
from memory.tenancy import tenant_context

AT_ONCE = 100

_OVERDUE = """
SELECT id FROM memory_record
WHERE tenant_id = %(tenant)s::uuid AND status = 'active' AND valid_until < %(today)s::date
ORDER BY valid_until, id LIMIT %(limit)s::int
"""


# Superseded already, and kept for the history until now.
_SENSITIVE = """
SELECT r.id, r.status, r.review, r.subject_type, r.subject_id, r.key, r.level, r.bindings_text, false, r.hold_count, v.value_text
FROM memory_record r JOIN record_value v ON v.tenant_id = r.tenant_id AND v.record_id = r.id
WHERE r.tenant_id = %(tenant)s::uuid AND r.status = 'superseded' AND r.sensitivity = 'sensitive'
  AND r.valid_until < %(today)s::date
ORDER BY r.id LIMIT %(limit)s::int FOR UPDATE OF r
"""


def expire_overdue(*, principal: Principal) -> int:
    """Expire every record of the tenant past its last day, with what was derived from it, and drop sensitive values that were
    kept for a history until then; how many records there were.

    Opens its own transactions; call it outside any.
    """
    _begin(principal)
    count = 0
    while expired := _batch(principal):
        count += expired
    while dropped := _drop(principal):
        count += dropped
    return count


def _begin(principal: Principal) -> None:
    """First what takes the place of something else today: what it replaces is superseded by it, and has not just expired."""
    while True:
        with tenant_context(principal.tenant_id):
            things = begun_things(principal, limit=AT_ONCE)
        for thing in things:
            with tenant_context(principal.tenant_id):
                lock_thing_today(principal, *thing)
        if len(things) < AT_ONCE:
            return


def _batch(principal: Principal) -> int:
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            _OVERDUE,
            {
                "tenant": principal.tenant_id,
                "today": today_of(principal),
                "limit": AT_ONCE,
            },
        )
        ids = [row[0] for row in cursor.fetchall()]
        act = Act(principal, "expired")
        endings = expire(principal.tenant_id, ids, act.at) if ids else []
        if endings:
            entry = act.log(recordIds=[one.id for one in endings], reason="valid-until")
            act.keep(ended(endings, "expired"), entry, reason_code="valid-until")
        return len(endings)


def _drop(principal: Principal) -> int:
    """Of what is sensitive nothing is kept past its last day, whatever took its place before. What is held is sealed."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            _SENSITIVE,
            {
                "tenant": principal.tenant_id,
                "today": today_of(principal),
                "limit": AT_ONCE,
            },
        )
        past = [Ending(*row) for row in cursor.fetchall()]
        act = Act(principal, "expired")
        drop_values(principal.tenant_id, past, act.at, None)
        if past:
            entry = act.log(recordIds=[one.id for one in past], reason="valid-until")
            act.keep(ended(past, "superseded"), entry, reason_code="valid-until")
        return len(past)
