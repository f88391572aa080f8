"""Expire what is past its last day though nobody recalled it: what is sensitive must not wait for a question to lose its value.
And let what begins today take its place.

Recall does both to what it meets; this is the worker's round over the rest, in batches that stand alone.
"""

from django.db import connection

from memory.access import Principal
from memory.queries.records import today_of
from memory.records.acts import Act, ended
from memory.records.ending import expire
from memory.records.upcoming import begun_things, lock_thing_today
from memory.tenancy import tenant_context

AT_ONCE = 100

_OVERDUE = """
SELECT id FROM memory_record
WHERE tenant_id = %(tenant)s::uuid AND status = 'active' AND valid_until < %(today)s::date
ORDER BY valid_until, id LIMIT %(limit)s::int
"""


def expire_overdue(*, principal: Principal) -> int:
    """Expire every record of the tenant past its last day, with what was derived from it; how many expired.

    Opens its own transactions; call it outside any.
    """
    _begin(principal)
    count = 0
    while expired := _batch(principal):
        count += expired
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
