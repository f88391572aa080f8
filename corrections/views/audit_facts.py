"""Facts for those who govern: the list, and one with its envelope and its revisions.

For an auditor what a fact says is behind a logged reveal, and the list shows none of it.
"""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET, require_http_methods

from corrections.actions.reveal_fact import reveal_fact, sees_content
from corrections.fact_history import content_lines, people_of, revisions_shown
from corrections.facts_shown import fields_of, ladder, scope_lines, shown, writer_of
from corrections.forms import FactsOfAllFilter, ReasonForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address, chips
from corrections.queries.names import names_of
from corrections.visit import GOVERNING, Visit, in_tenant
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, FactNotFound
from memory.fact_shape import FactView
from memory.hashing import tag
from memory.queries.facts import FactFilters, fact_revisions, list_facts
from memory.retention import retention_basis

FACTS_A_PAGE = 40
REVISIONS_A_PAGE = 10


@require_GET
@in_tenant(*GOVERNING)
def facts(visit: Visit) -> HttpResponse:
    """The facts in use, newest first; a whole id leads to its fact."""
    request = visit.request
    form = FactsOfAllFilter(request.GET)
    wanted = form.wanted()
    if "fact" in wanted and _is_here(visit, wanted["fact"]):
        return HttpResponseRedirect(visit.url("audit-fact", wanted["fact"]))
    bound = {"page": "audit-facts", **wanted}
    position = _position(visit, bound)
    found = [] if form.is_bad or "fact" in wanted else _found(visit, wanted, position)
    on_page = found[:FACTS_A_PAGE]
    context = {
        "form": form,
        "chips": chips(request, form),
        "rows": [(shown(one), scope_lines(one)) for one in on_page],
        "names": names_of(visit.principal, [writer_of(one) for one in on_page]),
        "sees": visit.principal.role != "auditor",
        "older": _older(visit, bound, found),
        "newest": address(request, drop=("after",)) if position else None,
        "clear_url": request.path,
    }
    return render_page(request, "audit/facts.html", context, fragment="audit/_facts.html")


def _is_here(visit: Visit, fact_id: str) -> bool:
    try:
        fact_revisions(visit.principal, fact_id, limit=1, if_kept=True)
    except FactNotFound:
        return False
    return True


def _found(visit: Visit, wanted: dict[str, Any], after: tuple[str, str] | None) -> list[FactView]:
    scope = {"userId": wanted.get("person"), "projectId": wanted.get("project")}
    filters = FactFilters(
        type=wanted.get("type"), scope={key: id for key, id in scope.items() if id}
    )
    return list_facts(visit.principal, filters, after=after, limit=FACTS_A_PAGE + 1)


def _older(visit: Visit, bound: dict[str, Any], found: list[FactView]) -> str | None:
    if len(found) <= FACTS_A_PAGE:
        return None
    last = found[FACTS_A_PAGE - 1]
    place = [last.created_at.isoformat(), last.id]
    return address(visit.request, after=make_cursor(visit.principal, "facts", bound, place))


def _position(visit: Visit, bound: dict[str, Any]) -> tuple[str, str] | None:
    try:
        place = read_cursor(visit.principal, "facts", bound, visit.request.GET.get("after") or None)
    except BadInput:
        return None  # the filter changed: start from the newest
    return (place[0], place[1]) if place else None


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def fact(visit: Visit, fact_id: str) -> HttpResponse:
    current = fact_revisions(visit.principal, fact_id, limit=1, if_kept=True)[0]
    if visit.request.method != "POST":
        return _page(visit, current, ReasonForm())
    form = ReasonForm(visit.request.POST)
    if not form.is_valid():
        return _page(visit, current, form, status=422)

    def act() -> str:
        reveal = reveal_fact(
            principal=visit.principal, fact=current, reason=form.cleaned_data["reason"]
        )
        return address(visit.request, revealed=reveal) + "#says"

    return sent_once(visit, act)


def _history(visit: Visit, current: FactView) -> Sequence[FactView]:
    """A page of revisions and one more, from the one that the address names."""
    given = visit.request.GET.get("before", "")
    before = int(given) if given.isdecimal() and len(given) <= 9 else None
    return fact_revisions(
        visit.principal, current.id, before=before, limit=REVISIONS_A_PAGE + 1, if_kept=True
    )


def _page(visit: Visit, current: FactView, form: ReasonForm, status: int = 200) -> HttpResponse:
    request, history = visit.request, _history(visit, current)
    on_page = history[:REVISIONS_A_PAGE]
    sees = sees_content(visit.principal, current, request.GET.get("revealed"))
    lines, is_cut = content_lines(current) if sees else ([], False)
    has_more = len(history) > REVISIONS_A_PAGE
    context = {
        "shown": shown(current),
        "fact": current,
        "form": form,
        "once": new_key(),
        "sees": sees,
        "fields": fields_of(current.content_text) if sees else [],
        "lines": lines,
        "is_cut": is_cut,
        "content_hash": tag(current.content_hash) if current.content_hash else None,
        "scope": scope_lines(current),
        "ladder": ladder(retention_basis(visit.principal, current.id)),
        "revisions": revisions_shown(on_page, history),
        "names": names_of(visit.principal, [*people_of(on_page), writer_of(current)]),
        "older": address(request, before=on_page[-1].version) if has_more else None,
        "newest": address(request, drop=("before",)) if "before" in request.GET else None,
    }
    return render_page(request, "audit/fact.html", context, status=status)
