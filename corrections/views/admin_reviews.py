"""The review queue: what waits, one thing with what it would change, and deciding one or many."""

import json
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corrections.differences import difference
from corrections.facts_shown import line_of
from corrections.forms_trust import DecisionForm, ReviewFilter
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address, chips
from corrections.queries.names import names_of
from corrections.remembered import key_words
from corrections.review_words import (
    ACTS,
    BUTTONS,
    REASONS,
    WHY,
    kind_words,
    what_either_does,
    where_it_applies,
)
from corrections.visit import APPOINTING, Visit, in_tenant
from corrections.words import ROUTE_LABELS
from memory.actions.approve_review import approve_review
from memory.actions.decide_reviews import MOST_AT_ONCE, Named, decide_reviews
from memory.actions.reject_review import reject_review
from memory.api.pagination import make_cursor, read_cursor
from memory.canonical import canonical
from memory.errors import BadInput, DomainError, ReviewNotFound
from memory.queries.review_effect import effect_of, occupants, said_words
from memory.queries.reviews import ReviewFilters, ReviewItem, find_review, list_reviews

ROWS_A_PAGE = 30
_SEPARATOR = "\x1f"


@require_GET
@in_tenant(*APPOINTING)
def reviews(visit: Visit) -> HttpResponse:
    request = visit.request
    form = ReviewFilter(request.GET)
    wanted = form.wanted()
    filters = ReviewFilters(
        wanted.get("kind"), wanted.get("reason"), wanted.get("subject"), wanted.get("writer")
    )
    position = _position(visit, filters)
    found = (
        []
        if form.is_bad
        else list_reviews(visit.principal, filters, after=position, limit=ROWS_A_PAGE + 1)
    )
    shown = found[:ROWS_A_PAGE]
    context = {
        "form": form,
        "chips": chips(request, form),
        "rows": _rows(visit, shown),
        "names": names_of(visit.principal, [one.writer for one in shown]),
        "older": _next_address(visit, filters, shown) if len(found) > ROWS_A_PAGE else None,
        "newest": address(request, drop=("after",)) if position else None,
        "clear_url": request.path,
        "once": new_key(),
        "here": request.get_full_path(),
    }
    return render_page(request, "trust/reviews.html", context, fragment="trust/_reviews.html")


def _position(visit: Visit, filters: ReviewFilters) -> tuple[str, str, str] | None:
    given = visit.request.GET.get("after") or None
    try:
        place = read_cursor(visit.principal, "reviews", filters.wire(), given)
    except BadInput:
        return None  # the filter changed: start from the oldest
    return (place[0], place[1], place[2]) if place else None


def _next_address(visit: Visit, filters: ReviewFilters, shown: list[ReviewItem]) -> str:
    last = shown[-1]
    place = [last.since.isoformat(), last.id, last.kind]
    return address(
        visit.request, after=make_cursor(visit.principal, "reviews", filters.wire(), place)
    )


def _rows(visit: Visit, shown: list[ReviewItem]) -> list[dict[str, Any]]:
    standing = occupants(visit.principal, [one.id for one in shown if one.kind == "record"])
    rows = []
    for one in shown:
        stands = standing.get(one.id) if one.kind == "record" else None
        expect = stands[0] if stands is not None else ""
        rows.append(
            {
                "one": one,
                "url": visit.url("review", one.kind, one.id),
                "name": _name(one),
                "kind": kind_words(one),
                "badge": REASONS[one.reason],
                "said": _said_in_a_line(one),
                "stands": line_of(json.loads(stands[1])) if stands and stands[1] else None,
                "choice": _SEPARATOR.join((one.kind, one.id, expect)),
            }
        )
    return rows


def _said_in_a_line(one: ReviewItem) -> str | None:
    if one.said is None:
        return None
    return str(ACTS["delete"]) if one.deletes_fact else line_of(said_words(one))


def _name(one: ReviewItem) -> str:
    if one.kind == "fact" or one.fact_id is not None:
        return one.name or _("a fact")
    return key_words(one.name) if one.name else _("a memory")


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def review(visit: Visit, kind: str, review_id: str) -> HttpResponse:
    def found() -> ReviewItem:
        return find_review(visit.principal, kind, review_id)

    try:
        if visit.request.method == "GET":
            return _page(visit, found())
        form = DecisionForm(visit.request.POST)
        if not form.is_valid():
            return _page(visit, found(), status=422)
        given = form.cleaned_data
        try:
            with transaction.atomic():
                return sent_once(visit, lambda: _decide(visit, found(), given))
        except DomainError as error:
            return _page(visit, found(), error=error, status=409)
    except ReviewNotFound:
        return render_page(visit.request, "trust/decided.html", {}, status=404)


def _decide(visit: Visit, item: ReviewItem, given: dict[str, Any]) -> str:
    principal, kind, item_id = visit.principal, item.kind, item.id
    approved, rejected = what_either_does(item)
    if given["decision"] == "approve":
        approve_review(principal=principal, kind=kind, item_id=item_id, expect=given["expect"])
        messages.success(visit.request, str(approved))
    else:
        reject_review(principal=principal, kind=kind, item_id=item_id)
        messages.success(visit.request, str(rejected))
    return visit.list_url("reviews")


def _page(
    visit: Visit, item: ReviewItem, *, error: DomainError | None = None, status: int = 200
) -> HttpResponse:
    effect = effect_of(visit.principal, item)
    said = None if item.said is None or item.deletes_fact else canonical(said_words(item))
    is_complaint = item.kind in ("withdrawal", "dispute")
    compared = None if is_complaint or item.act not in (None, "correct", "supersede") else said
    context = {
        "item": item,
        "name": _name(item),
        "kind": kind_words(item),
        "badge": REASONS[item.reason],
        "why": WHY[item.reason],
        "act": None if item.fact_id else ACTS.get(str(item.act)) or ROUTE_LABELS.get(str(item.act)),
        "effect": effect,
        "difference": difference(
            effect.before_text if compared or item.deletes_fact else None, compared or said
        ),
        "ends": [(one, where_it_applies(one.level, one.bindings)) for one in effect.ends],
        "applies": where_it_applies(item.level, item.bindings) if item.level else None,
        "names": names_of(visit.principal, [item.writer]),
        "does": what_either_does(item),
        "buttons": BUTTONS[item.kind],
        "error": error,
        "once": new_key(),
    }
    return render_page(visit.request, "trust/review.html", context, status=status)


@require_POST
@in_tenant(*APPOINTING)
def decide_many(visit: Visit) -> HttpResponse:
    """The chosen ones of a page of the list, each by itself."""
    form = DecisionForm(visit.request.POST)
    chosen = [one.split(_SEPARATOR) for one in visit.request.POST.getlist("chosen")]
    named = [Named(one[0], one[1], one[2]) for one in chosen if len(one) == 3][:MOST_AT_ONCE]
    if not form.is_valid() or not named:
        messages.warning(visit.request, _("Choose one or more first."))
        return HttpResponseRedirect(visit.list_url("reviews"))
    decision = form.cleaned_data["decision"]
    return sent_once(visit, lambda: _decide_many(visit, decision, named))


def _decide_many(visit: Visit, decision: Any, named: list[Named]) -> str:
    outcomes = decide_reviews(principal=visit.principal, decision=decision, named=named)
    refused = [one for one in outcomes if one.refusal is not None]
    done = len(outcomes) - len(refused)
    if done:
        words = ngettext("Decided: %(n)d.", "Decided: %(n)d.", done) % {"n": done}
        messages.success(visit.request, words)
    for one in refused[:5]:
        why = {"id": one.named.id, "why": str(one.refusal)}
        messages.warning(visit.request, _("%(id)s is as it was: %(why)s") % why)
    if len(refused) > 5:
        left = ngettext(
            "%(n)d more is as it was.", "%(n)d more are as they were.", len(refused) - 5
        )
        messages.warning(visit.request, left % {"n": len(refused) - 5})
    return visit.list_url("reviews")
