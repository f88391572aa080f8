"""Everything that an act on a memory would take along, page by page: where the form had no room for all of it."""

from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from corrections.acting import correctable_record
from corrections.falling_words import in_words
from corrections.htmx import render_page
from corrections.paging import address
from corrections.queries.falling import Place, falls_with
from corrections.remembered import remembered
from corrections.visit import Visit, in_tenant
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, RouteNotFound
from memory.records.record import Record
from memory.records.routes import find_route

FALLS_A_PAGE = 50


@require_GET
@in_tenant()
def falls(visit: Visit, record_id: str, route: str) -> HttpResponse:
    record = correctable_record(visit, record_id)
    found = find_route(visit.principal, route)
    if found is None or found.url_template or found.audience != "person":
        raise RouteNotFound
    bound = {"page": "falls", "record": record.id, "route": route}
    position = _position(visit, bound)
    falling = falls_with(visit.principal, record, route, after=position, limit=FALLS_A_PAGE + 1)
    older = None
    if len(falling.shown) > FALLS_A_PAGE:
        last = falling.shown[FALLS_A_PAGE - 1]
        older = address(
            visit.request, after=make_cursor(visit.principal, "falls", bound, [last.key, last.id])
        )
    context = {
        "memory": remembered(record),
        "route": found,
        "falls": _cut(visit, record, route, falling),
        "older": older,
        "newest": address(visit.request, drop=("after",)) if position else None,
    }
    return render_page(visit.request, "me/falls.html", context)


def _cut(visit: Visit, record: Record, route: str, falling: Any) -> Any:
    told = in_words(visit, record, route, falling)
    del told.rows[FALLS_A_PAGE:]
    return told


def _position(visit: Visit, bound: dict[str, Any]) -> Place | None:
    try:
        given = read_cursor(visit.principal, "falls", bound, visit.request.GET.get("after") or None)
    except BadInput:
        return None  # of another list: start from the first
    return (given[0], given[1]) if given else None
