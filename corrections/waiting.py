"""What waits for an admin, for the overview: one cheap count a thing, all of them in one statement.

A part of the product adds one `Wait` to WAITS. Its SQL is one scalar that an index answers; it knows %(tenant)s, %(today)s in
the tenant's zone, and %(me)s: the reader as acts name them (`user:7`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.urls import NoReverseMatch
from django.utils.translation import ngettext

from corrections.visit import Visit
from memory.queries.records import today_of
from memory.records.overdue import is_over

KEY_ENDS_SOON_DAYS = 14
SWEEP_FAILED_DAYS = 7


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that may wait. `page`: the name of the address where it is done; `tone`: as a badge has it."""

    count_sql: str
    page: str
    words: Callable[[int], str]
    icon: str = "!"
    tone: str = "warn"


@dataclass(frozen=True, slots=True)
class Waiting:
    """It waits now. `url` is empty where no page is."""

    words: str
    url: str
    icon: str
    tone: str


def _releases_to_approve(n: int) -> str:
    return ngettext(
        "%(n)d release of a hold waits for a second admin: it may be you",
        "%(n)d releases of holds wait for a second admin: it may be you",
        n,
    ) % {"n": n}


def _own_releases(n: int) -> str:
    return ngettext(
        "%(n)d release that you asked for waits for another admin",
        "%(n)d releases that you asked for wait for another admin",
        n,
    ) % {"n": n}


def _holds_to_review(n: int) -> str:
    return ngettext(
        "%(n)d hold is past its review date", "%(n)d holds are past their review date", n
    ) % {"n": n}


def _stopped_erasures(n: int) -> str:
    return ngettext(
        "%(n)d erasure stopped and needs a look", "%(n)d erasures stopped and need a look", n
    ) % {"n": n}


def _running_erasures(n: int) -> str:
    return ngettext("%(n)d erasure is running", "%(n)d erasures are running", n) % {"n": n}


def _unconfigured_routes(n: int) -> str:
    return ngettext(
        "%(n)d correction route is named by memories and not configured",
        "%(n)d correction routes are named by memories and not configured",
        n,
    ) % {"n": n}


def _ending_keys(n: int) -> str:
    return ngettext(
        "%(n)d key in use ends within two weeks", "%(n)d keys in use end within two weeks", n
    ) % {"n": n}


def _reviews(n: int) -> str:
    return ngettext("%(n)d thing waits for review", "%(n)d things wait for review", n) % {"n": n}


def _quarantines(n: int) -> str:
    return ngettext(
        "%(n)d quarantine waits to be lifted or rolled back",
        "%(n)d quarantines wait to be lifted or rolled back",
        n,
    ) % {"n": n}


def _failed_sweeps(n: int) -> str:
    return ngettext(
        "%(n)d sweep of this week stopped before its end",
        "%(n)d sweeps of this week stopped before their end",
        n,
    ) % {"n": n}


def _sweeping_is_off(n: int) -> str:
    return ngettext(
        "Sweeping is switched off: nothing that is due is destroyed",
        "Sweeping is switched off: nothing that is due is destroyed",
        n,
    )


_OPEN_RELEASES = "SELECT count(*) FROM hold_release WHERE tenant_id = %(tenant)s::uuid AND decision IS NULL AND requested_by"
_UNFINISHED = "SELECT count(*) FROM erasure WHERE tenant_id = %(tenant)s::uuid AND status <> 'completed' AND last_error IS"

_WAITING_REVIEWS = (
    "SELECT (SELECT count(*) FROM memory_record r WHERE r.tenant_id = %(tenant)s::uuid "
    f"AND r.review IN ('pending', 'withdrawn') AND r.status = 'active' AND NOT {is_over('r')}) "
    "+ (SELECT count(*) FROM pending_act WHERE tenant_id = %(tenant)s::uuid AND decided_at IS NULL) "
    "+ (SELECT count(*) FROM fact WHERE tenant_id = %(tenant)s::uuid AND review = 'pending' AND deleted_at IS NULL) "
    "+ (SELECT count(*) FROM memory_record r WHERE r.tenant_id = %(tenant)s::uuid AND r.disputed_at IS NOT NULL "
    f"AND r.status = 'active' AND r.review IS NULL AND NOT {is_over('r')})"
)

WAITS: list[Wait] = [
    Wait(_WAITING_REVIEWS, "reviews", _reviews),
    Wait(
        "SELECT count(*) FROM quarantine WHERE tenant_id = %(tenant)s::uuid AND ended_at IS NULL",
        "quarantines",
        _quarantines,
        "‖",
        "held",
    ),
    Wait(f"{_OPEN_RELEASES} <> %(me)s::text", "holds", _releases_to_approve),
    Wait(f"{_OPEN_RELEASES} = %(me)s::text", "holds", _own_releases, "…", "info"),
    Wait(
        "SELECT count(*) FROM legal_hold WHERE tenant_id = %(tenant)s::uuid AND released_at IS NULL AND review_on < current_date",
        "holds",
        _holds_to_review,
    ),
    Wait(
        "SELECT count(*) FROM tenant WHERE id = %(tenant)s::uuid AND (settings -> 'retention' ->> 'sweepIsOff')::bool",
        "sweeps",
        _sweeping_is_off,
    ),
    Wait(f"{_UNFINISHED} NOT NULL", "erasures", _stopped_erasures, "✗", "bad"),
    Wait(f"{_UNFINISHED} NULL", "erasures", _running_erasures, "…", "info"),
    Wait(
        "SELECT count(*) FROM correction_route WHERE tenant_id = %(tenant)s::uuid AND NOT is_configured",
        "correction-routes",
        _unconfigured_routes,
    ),
    Wait(
        "SELECT count(*) FROM api_key WHERE tenant_id = %(tenant)s::uuid AND revoked_at IS NULL AND expires_at > now() "
        f"AND expires_at < now() + interval '{KEY_ENDS_SOON_DAYS} days' AND last_used_at > now() - interval '30 days'",
        "api-keys",
        _ending_keys,
    ),
    Wait(
        "SELECT count(*) FROM sweep WHERE tenant_id = %(tenant)s::uuid AND status = 'stopped' "
        f"AND started_at > now() - interval '{SWEEP_FAILED_DAYS} days'",
        "sweeps",
        _failed_sweeps,
        "✗",
        "bad",
    ),
]
"""Most pressing first."""


def what_waits(visit: Visit) -> list[Waiting]:
    """What waits now, in the order of WAITS."""
    parameters: dict[str, Any] = {
        "tenant": visit.principal.tenant_id,
        "me": visit.principal.writer,
        "today": today_of(visit.principal),
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT " + ", ".join(f"({one.count_sql})" for one in WAITS),
            parameters,
        )
        counts = cursor.fetchone()
    return [
        Waiting(one.words(count), _url(visit, one.page), one.icon, one.tone)
        for one, count in zip(WAITS, counts, strict=True)
        if count
    ]


def _url(visit: Visit, page: str) -> str:
    try:
        return visit.url(page)
    except NoReverseMatch:
        return ""
