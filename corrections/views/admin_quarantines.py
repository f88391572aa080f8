"""Quarantine: see what a key or a run wrote, take it out of use, and then lift that or roll it back."""

from collections.abc import Callable
from datetime import datetime, time
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corrections.forms_trust import QuarantineForm, SelectorForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address
from corrections.queries.names import key_names, names_of
from corrections.remembered import key_words
from corrections.review_words import OUTCOMES, QUARANTINE_STATES
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.lift_quarantine import lift_quarantine
from memory.actions.place_quarantine import place_quarantine
from memory.actions.roll_back_quarantine import roll_back_quarantine
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, DomainError, NothingToQuarantine, QuarantineClosed
from memory.quarantines import (
    SHOWN,
    QuarantineView,
    Selector,
    Suspect,
    find_quarantine,
    list_quarantines,
    quarantined,
    suspects,
)

ROWS_A_PAGE = 30


@require_GET
@in_tenant(*APPOINTING)
def quarantines(visit: Visit) -> HttpResponse:
    given = visit.request.GET.get("after") or None
    try:
        position = read_cursor(visit.principal, "quarantines", {}, given)
    except BadInput:
        position = None
    found = list_quarantines(
        visit.principal.tenant_id,
        after=(position[0], position[1]) if position else None,
        limit=ROWS_A_PAGE + 1,
    )
    shown, older = found[:ROWS_A_PAGE], None
    if len(found) > ROWS_A_PAGE:
        place = [shown[-1].placed_at.isoformat(), str(shown[-1].id)]
        older = address(visit.request, after=make_cursor(visit.principal, "quarantines", {}, place))
    writers = [one.placed_by for one in shown] + [_writer(one) for one in shown]
    context = {
        "rows": [(one, QUARANTINE_STATES[one.status], _writer(one)) for one in shown],
        "names": names_of(visit.principal, writers),
        "older": older,
        "newest": visit.request.path if position else None,
    }
    return render_page(visit.request, "trust/quarantines.html", context)


def _writer(one: QuarantineView) -> str:
    return f"service:{one.selector_id}" if one.selector == "key" else one.selector_id


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_quarantine(visit: Visit) -> HttpResponse:
    """Form, then preview on the same address, then the act."""
    request = visit.request
    given = request.GET if any(request.GET.get(name) for name in ("key", "run")) else None
    form = SelectorForm(given, keys=key_names(visit.principal))
    selector = _selector(form) if form.is_bound and form.is_valid() else None
    reason = QuarantineForm(request.POST if request.method == "POST" else None)
    if selector is not None and reason.is_bound and reason.is_valid():
        why = reason.cleaned_data["reason"]
        try:
            with transaction.atomic():
                return sent_once(visit, lambda: _place(visit, selector, why))
        except NothingToQuarantine:
            reason.add_error(None, _("Nothing that is in use was written so any more."))
    context = {"form": form, "reason": reason, "selector": selector, "once": new_key()}
    if selector is not None:
        context |= _preview(suspects(visit.principal.tenant_id, selector))
    status = 422 if form.errors or reason.errors else 200
    return render_page(request, "trust/new_quarantine.html", context, status=status)


def _selector(form: SelectorForm) -> Selector:
    given = form.cleaned_data
    since = given.get("since")
    moment = datetime.combine(since, time.min, timezone.get_current_timezone()) if since else None
    if given["key"]:
        return Selector("key", given["key"], moment)
    return Selector("run", given["run"], moment)


def _preview(found: list[Suspect]) -> dict[str, Any]:
    return {
        "records": sum(one.kind == "record" for one in found),
        "facts": sum(one.kind == "fact" for one in found),
        "held": sum(one.is_held for one in found),
        "first": [_shown(one) for one in found[:SHOWN]],
        "more": max(len(found) - SHOWN, 0),
    }


def _shown(one: Suspect) -> dict[str, Any]:
    return {
        "one": one,
        "name": key_words(one.name) if one.kind == "record" else one.name,
        "outcome": OUTCOMES.get(one.outcome) if one.outcome else None,
    }


def _place(visit: Visit, selector: Selector, reason: str) -> str:
    view = place_quarantine(principal=visit.principal, selector=selector, reason=reason)
    messages.success(visit.request, _("It is out of use. Now look at it in peace."))
    return visit.url("quarantine", view.id)


@require_GET
@in_tenant(*APPOINTING)
def quarantine(visit: Visit, quarantine_id: UUID) -> HttpResponse:
    return _page(visit, quarantine_id)


def _page(
    visit: Visit, quarantine_id: UUID, *, error: DomainError | None = None, status: int = 200
) -> HttpResponse:
    tenant_id = visit.principal.tenant_id
    view = find_quarantine(tenant_id, str(quarantine_id))
    first = quarantined(tenant_id, view.id)
    outcomes = [(OUTCOMES[code], n) for code, n in (view.outcomes or {}).items()]
    context = {
        "view": view,
        "badge": QUARANTINE_STATES[view.status],
        "writer": _writer(view),
        "first": [_shown(one) for one in first],
        "more": max(view.records + view.facts - len(first), 0),
        "outcomes": outcomes,
        "names": names_of(visit.principal, [view.placed_by, view.ended_by, _writer(view)]),
        "error": error,
        "once": new_key(),
    }
    return render_page(visit.request, "trust/quarantine.html", context, status=status)


@require_POST
@in_tenant(*APPOINTING)
def lift(visit: Visit, quarantine_id: UUID) -> HttpResponse:
    return _ended(visit, quarantine_id, lift_quarantine)


@require_POST
@in_tenant(*APPOINTING)
def roll_back(visit: Visit, quarantine_id: UUID) -> HttpResponse:
    return _ended(visit, quarantine_id, roll_back_quarantine)


def _ended(visit: Visit, quarantine_id: UUID, end: Callable[..., QuarantineView]) -> HttpResponse:
    def act() -> str:
        view = end(principal=visit.principal, quarantine_id=str(quarantine_id))
        words = {
            "lifted": _("Lifted. It is used again as before."),
            "rolled-back": _("Rolled back. What was there before is used again."),
        }
        messages.success(visit.request, words.get(view.status, _("A part is done. Go on below.")))
        return visit.url("quarantine", quarantine_id)

    try:
        with transaction.atomic():
            return sent_once(visit, act)
    except QuarantineClosed as error:
        return _page(visit, quarantine_id, error=error, status=409)
