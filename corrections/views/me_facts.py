"""Facts about me: the list, and one fact with its revisions as differences."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from corrections.fact_history import content_lines, people_of, revisions_shown
from corrections.facts_shown import fields_of, ladder, shown, writer_of
from corrections.forms import FactsFilter
from corrections.htmx import render_page
from corrections.once import new_key
from corrections.paging import address, chips
from corrections.queries.my_facts import (
    FactsWanted,
    my_fact_revisions,
    my_fact_types,
    my_facts,
)
from corrections.queries.names import names_of
from corrections.views.me_fact_acts import may_act_on
from corrections.views.me_memory import quote_of, quoted_entry
from corrections.visit import Visit, in_tenant
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput
from memory.retention import retention_basis

FACTS_A_PAGE = 30
REVISIONS_A_PAGE = 10


@require_GET
@in_tenant(about_self=True)
def facts(visit: Visit) -> HttpResponse:
    request = visit.request
    types = my_fact_types(visit.principal)
    form = FactsFilter(request.GET, types=list(types))
    wanted = form.wanted()
    bound = {"page": "facts", **{name: str(value) for name, value in wanted.items()}}
    position = _position(visit, bound)
    asked = FactsWanted(
        state=wanted.get("state"),
        words=wanted.get("q"),
        type=wanted.get("type"),
        since=form.moments()["since"],
    )
    found = (
        []
        if form.is_bad
        else my_facts(visit.principal, asked, after=position, limit=FACTS_A_PAGE + 1)
    )
    on_page, older = found[:FACTS_A_PAGE], None
    if len(found) > FACTS_A_PAGE:
        last = on_page[-1]
        place = [last.created_at.isoformat(), last.id]
        older = address(request, after=make_cursor(visit.principal, "facts", bound, place))
    context = {
        "form": form,
        "chips": chips(request, form),
        "facts": [shown(fact) for fact in on_page],
        "names": names_of(visit.principal, [writer_of(fact) for fact in on_page]),
        "older": older,
        "newest": address(request, drop=("after",)) if position else None,
        "clear_url": request.path,
        "total": sum(types.values()),
    }
    return render_page(request, "me/facts.html", context, fragment="me/_facts.html")


def _position(visit: Visit, bound: dict[str, Any]) -> tuple[datetime, str] | None:
    given = visit.request.GET.get("after") or None
    try:
        place = read_cursor(visit.principal, "facts", bound, given)
    except BadInput:
        return None  # the filter changed: start from the newest
    return (datetime.fromisoformat(place[0]), place[1]) if place else None


@require_GET
@in_tenant(about_self=True)
def fact(visit: Visit, fact_id: str) -> HttpResponse:
    """The current revision with everything about it, and a page of revisions, newest first."""
    given = visit.request.GET.get("before", "")
    before = int(given) if given.isdecimal() and len(given) <= 9 else None
    found = my_fact_revisions(visit.principal, fact_id, limit=REVISIONS_A_PAGE + 1)
    current, history = found[0], found
    if before is not None:
        history = my_fact_revisions(
            visit.principal, fact_id, before=before, limit=REVISIONS_A_PAGE + 1
        )
    on_page = history[:REVISIONS_A_PAGE]
    lines, is_cut = content_lines(current)
    quoted = quoted_entry(visit, current.cause_ids[0]) if current.cause_ids else None
    context = {
        "shown": shown(current),
        "fact": current,
        "may_act": may_act_on(visit, current),
        "once": new_key(),
        "fields": fields_of(current.content_text),
        "lines": lines,
        "is_cut": is_cut,
        "quoted": quoted,
        "quote": quote_of(quoted),
        "ladder": ladder(retention_basis(visit.principal, fact_id)),
        "revisions": revisions_shown(on_page, history),
        "names": names_of(visit.principal, [*people_of(on_page), writer_of(current)]),
        "older": f"?before={on_page[-1].version}" if len(history) > REVISIONS_A_PAGE else None,
        "newest": visit.request.path if before is not None else None,
    }
    return render_page(visit.request, "me/fact.html", context)
