"""The register of what is no longer used: a person's own, and for those who govern the whole workspace's."""

import json
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from corrections.facts_shown import line_of
from corrections.forms_register import RegisterFilter
from corrections.htmx import render_page
from corrections.paging import address, chips
from corrections.queries.names import names_of
from corrections.queries.register import Ended, RegisterFilters, register, sees_all
from corrections.receipt_words import way_words
from corrections.register_words import how_badge, reason_words
from corrections.remembered import key_words
from corrections.templatetags.lookups import label
from corrections.visit import Visit, in_tenant
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput
from memory.records.routes import routes_named

ROWS_A_PAGE = 40


@require_GET
@in_tenant("owner", "admin", "auditor", "person")
def what_ended(visit: Visit) -> HttpResponse:
    request, governs = visit.request, sees_all(visit.principal)
    form = RegisterFilter(request.GET, governs=governs)
    wanted = form.wanted()
    bound = {"page": "register", **{name: str(value) for name, value in wanted.items()}}
    position = _position(visit, bound)
    filters = RegisterFilters(
        how=wanted.get("how"),
        what=wanted.get("what"),
        name=wanted.get("name"),
        subject=wanted.get("subject"),
        act_id=wanted.get("act"),
        **form.moments(),
    )
    found = (
        []
        if form.is_bad
        else register(visit.principal, filters, after=position, limit=ROWS_A_PAGE + 1)
    )
    shown, older = found[:ROWS_A_PAGE], None
    if len(found) > ROWS_A_PAGE:
        last = shown[-1]
        cursor = make_cursor(visit.principal, "register", bound, [last.at.isoformat(), last.place])
        older = address(request, after=cursor)
    routes = routes_named(visit.principal, [one.route for one in shown if one.route])
    context = {
        "form": form,
        "chips": chips(request, form),
        "rows": [
            _row(visit, one, governs, {name: label(route) for name, route in routes.items()})
            for one in shown
        ],
        "names": names_of(visit.principal, [one.actor for one in shown]),
        "governs": governs,
        "is_masked": visit.principal.role == "auditor",
        "older": older,
        "newest": address(request, drop=("after",)) if position else None,
        "clear_url": request.path,
    }
    return render_page(request, "register/list.html", context, fragment="register/_rows.html")


def _position(visit: Visit, bound: dict[str, Any]) -> tuple[datetime, str] | None:
    given = visit.request.GET.get("after") or None
    try:
        place = read_cursor(visit.principal, "register", bound, given)
    except BadInput:
        return None  # the filter changed: start from the newest
    return (datetime.fromisoformat(place[0]), place[1]) if place else None


def _row(visit: Visit, one: Ended, governs: bool, labels: dict[str, Any]) -> dict[str, Any]:
    """One row in words, with where it leads."""
    record = "audit-record" if governs else "memory"
    url = None
    if one.what == "memory":
        url = visit.url(record, one.id)
    elif one.version is not None:
        url = visit.url("audit-fact" if governs else "my-fact", one.id)
    return {
        "one": one,
        "url": url,
        "name": key_words(one.name) if one.what == "memory" else one.name,
        "badge": how_badge(one.how),
        "reason": reason_words(one.reason_code),
        "route": labels.get(one.route, way_words(one.route)) if one.route else None,
        "said": _said(one),
        "successor_url": visit.url(record, one.successor) if one.successor else None,
        "fell_with_url": visit.url(record, one.fell_with) if one.fell_with else None,
        "act_url": f"{visit.request.path}?act={one.act_id}" if one.fell and one.act_id else None,
    }


def _said(one: Ended) -> str | None:
    """The beginning of what it said, where one is left and may be read."""
    if one.said is None:
        return None
    try:
        return line_of(json.loads(one.said))
    except ValueError:
        return one.said
