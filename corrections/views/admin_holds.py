"""Legal holds for those who govern: the list, and one hold with what it keeps, what it refused and who decided what."""

from datetime import date, timedelta
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from corrections.forms_holds import HoldsFilter, ReviewForm
from corrections.hold_words import (
    STANDINGS,
    act_words,
    hold_badge,
    is_review_due,
    scope_lines,
)
from corrections.htmx import render_page
from corrections.paging import address, chips
from corrections.queries.names import names_of
from corrections.visit import APPOINTING, GOVERNING, Visit, in_tenant
from memory.actions.review_hold import review_hold
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, HoldNotFound
from memory.holds import REVIEW_AFTER_DAYS, Hold, find_hold, list_holds
from memory.queries.hold_impact import SOON_DAYS
from memory.queries.hold_record import Kind, ever_kept, kept_by, refusals_of, requests_of

HOLDS_A_PAGE = 30
KEPT_A_PAGE = 50
REFUSALS_SHOWN = 20


def today() -> date:
    """The reader's day."""
    return timezone.localdate()


def position(visit: Visit, name: str, bound: dict[str, Any]) -> list[str] | None:
    """Where the list goes on; a place of another filter starts at the beginning."""
    try:
        return read_cursor(visit.principal, name, bound, visit.request.GET.get("after") or None)
    except BadInput:
        return None


@require_GET
@in_tenant(*GOVERNING)
def holds(visit: Visit) -> HttpResponse:
    request = visit.request
    form = HoldsFilter(request.GET)
    wanted = form.wanted()
    state, review = wanted.get("state"), wanted.get("review")
    by = {"due": today(), "soon": today() + timedelta(days=SOON_DAYS)}
    after = position(visit, "holds", wanted)
    found = (
        []
        if form.is_bad
        else list_holds(
            visit.principal.tenant_id,
            is_released=None if not state else state == "released",
            is_requested=state == "release-requested",
            review_by=by.get(review or ""),
            after=(after[0], after[1]) if after else None,
            limit=HOLDS_A_PAGE + 1,
        )
    )
    shown, older = found[:HOLDS_A_PAGE], None
    if len(found) > HOLDS_A_PAGE:
        last = shown[-1]
        cursor = make_cursor(visit.principal, "holds", wanted, [last.placed_at, last.id])
        older = address(request, after=cursor)
    context = {
        "form": form,
        "chips": chips(request, form),
        "rows": [
            {"hold": one, "badge": hold_badge(one), "is_due": is_review_due(one, today())}
            for one in shown
        ],
        "names": names_of(visit.principal, [one.placed_by for one in shown]),
        "older": older,
        "newest": address(request, drop=("after",)) if after else None,
        "clear_url": request.path,
        "may_act": visit.may(*APPOINTING),
    }
    return render_page(request, "govern/holds.html", context, fragment="govern/_holds.html")


@require_GET
@in_tenant(*GOVERNING)
def hold(visit: Visit, hold_id: UUID) -> HttpResponse:
    return hold_page(visit, find_hold(visit.principal.tenant_id, str(hold_id)))


def hold_page(visit: Visit, found: Hold, *, form: ReviewForm | None = None) -> HttpResponse:
    """One hold, whole."""
    tenant_id = visit.principal.tenant_id
    requests = requests_of(tenant_id, found.id)
    refusals = refusals_of(tenant_id, found.id, limit=REFUSALS_SHOWN)
    writers = [found.placed_by, *(one.asked_by for one in refusals)]
    for one in requests:
        writers += [one.requested_by, one.decided_by or ""]
    context = {
        "hold": found,
        "badge": hold_badge(found),
        "is_due": is_review_due(found, today()),
        "scope": scope_lines(found.scope_text),
        "requests": requests,
        "refusals": [(one, act_words(one.act)) for one in refusals],
        "names": names_of(visit.principal, writers),
        "is_mine": found.release_requested_by == visit.principal.writer,
        "may_act": visit.may(*APPOINTING) and found.released_at is None,
        "form": form or ReviewForm(initial={"review_on": _next_review()}),
        **_kept(visit, found),
    }
    status = 422 if form is not None else 200
    return render_page(visit.request, "govern/hold.html", context, status=status)


def _next_review() -> date:
    return today() + timedelta(days=REVIEW_AFTER_DAYS)


def _kept(visit: Visit, found: Hold) -> dict[str, Any]:
    """A page of what it keeps, of the kind that the address names."""
    request, tenant_id = visit.request, visit.principal.tenant_id
    counts = ever_kept(tenant_id, found.id)
    chosen = request.GET.get("kind")
    if chosen not in ("fact", "record"):
        chosen = "fact" if counts["fact"] or not counts["record"] else "record"
    bound = {"hold": str(found.id), "kind": chosen}
    after = position(visit, "hold-kept", bound)
    rows = kept_by(
        visit.principal,
        found.id,
        cast(Kind, chosen),
        is_released=found.released_at is not None,
        after=after[0] if after else None,
        limit=KEPT_A_PAGE + 1,
    )
    shown, older = rows[:KEPT_A_PAGE], None
    if len(rows) > KEPT_A_PAGE:
        cursor = make_cursor(visit.principal, "hold-kept", bound, [shown[-1].id])
        older = address(request, after=cursor)
    return {
        "kind": chosen,
        "counts": counts,
        "kept": [
            {
                "one": one,
                "badge": STANDINGS[one.standing],
                "has_page": one.standing in ("served", "ended"),
            }
            for one in shown
        ],
        "older": older,
        "newest": address(request, drop=("after",)) if after else None,
    }


@require_POST
@in_tenant(*APPOINTING)
def review(visit: Visit, hold_id: UUID) -> HttpResponse:
    """An admin looked at it, and it stays until the next look."""
    found = find_hold(visit.principal.tenant_id, str(hold_id))
    form = ReviewForm(visit.request.POST)
    if form.is_valid() and form.cleaned_data["review_on"] <= today():
        form.add_error("review_on", _("Choose a day that is still to come."))
    if found.released_at is not None:
        raise HoldNotFound
    if not form.is_valid():
        return hold_page(visit, found, form=form)
    review_hold(
        principal=visit.principal,
        hold_id=str(found.id),
        review_on=form.cleaned_data["review_on"],
    )
    messages.success(visit.request, _("The hold stays. It is to be looked at again on that day."))
    return HttpResponseRedirect(visit.url("hold", found.id))
