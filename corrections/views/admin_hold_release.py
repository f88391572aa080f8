"""Releasing a legal hold: one admin asks with a reason, a second looks at what would go and approves; any admin withdraws it."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from corrections.bound_preview import FIELD, is_still, seal_of
from corrections.forms_holds import ReleaseForm
from corrections.hold_words import hold_badge, refusal_words
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.proof import must_be_proved, proved_at
from corrections.queries.names import names_of
from corrections.views.admin_holds import today
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.release_hold import approve_release, request_release, withdraw_release
from memory.errors import HoldNotFound, ReleaseRefused
from memory.holds import Hold, find_hold
from memory.queries.hold_impact import SOON_DAYS, ReleaseImpact, release_impact

PURPOSE = "hold release"


def _unreleased(visit: Visit, hold_id: UUID) -> Hold:
    """Raises HoldNotFound for one that is released: there is nothing to ask for."""
    found = find_hold(visit.principal.tenant_id, str(hold_id))
    if found.released_at is not None:
        raise HoldNotFound
    return found


def _once(
    visit: Visit, act: Callable[[], str], refused: Callable[[str], HttpResponse]
) -> HttpResponse:
    """Do it, once; a refusal comes back as the page with the reason in words, and nothing half done."""
    try:
        with transaction.atomic():
            return sent_once(visit, act)
    except ReleaseRefused as error:
        return refused(refusal_words(error))


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def ask_release(visit: Visit, hold_id: UUID) -> HttpResponse:
    found = _unreleased(visit, hold_id)
    if visit.request.method != "POST":
        return _ask_page(visit, found, ReleaseForm(initial={"once": new_key()}))
    form = ReleaseForm(visit.request.POST)
    if not form.is_valid():
        return _ask_page(visit, found, form, status=422)
    must_be_proved(visit)

    def act() -> str:
        request_release(
            principal=visit.principal,
            hold_id=str(found.id),
            reason=form.cleaned_data["reason"],
            reauthenticated_at=proved_at(visit.request),
        )
        messages.success(
            visit.request, _("Asked for. A second admin decides; it stays until then.")
        )
        return visit.url("hold", found.id)

    return _once(visit, act, lambda words: _ask_page(visit, found, form, refused=words, status=409))


def _ask_page(
    visit: Visit, found: Hold, form: ReleaseForm, *, refused: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "hold": found,
        "form": form,
        "refused": refused,
        "impact": _impact(visit, found),
    }
    return render_page(visit.request, "govern/hold_ask_release.html", context, status=status)


def _impact(visit: Visit, found: Hold) -> ReleaseImpact:
    soon = today() + timedelta(days=SOON_DAYS)
    return release_impact(visit.principal.tenant_id, found.id, soon_day=soon)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def approve(visit: Visit, hold_id: UUID) -> HttpResponse:
    """What releasing does, counted; then the press, which binds to just these numbers."""
    found = _unreleased(visit, hold_id)
    if found.release_id is None:
        return HttpResponseRedirect(visit.url("hold", found.id))
    if visit.request.method == "GET":
        must_be_proved(visit)
        return _approve_page(visit, found, _impact(visit, found))
    impact = _impact(visit, found)
    if not is_still(PURPOSE, visit.request.POST.get(FIELD, ""), _shown(visit, found, impact)):
        return _approve_page(visit, found, impact, has_changed=True)
    must_be_proved(visit)

    def act() -> str:
        approve_release(
            principal=visit.principal,
            hold_id=str(found.id),
            reauthenticated_at=proved_at(visit.request),
        )
        messages.success(visit.request, _("The hold is released."))
        return visit.url("hold", found.id)

    return _once(visit, act, lambda words: _approve_page(visit, found, impact, refused=words))


def _shown(visit: Visit, found: Hold, impact: ReleaseImpact) -> list[str | int | None]:
    numbers: list[str | int | None] = [*impact.numbers()]
    return [visit.principal.writer, str(found.id), str(found.release_id), *numbers]


def _approve_page(
    visit: Visit,
    found: Hold,
    impact: ReleaseImpact,
    *,
    has_changed: bool = False,
    refused: str = "",
) -> HttpResponse:
    context = {
        "hold": found,
        "badge": hold_badge(found),
        "impact": impact,
        "seal": seal_of(PURPOSE, _shown(visit, found, impact)),
        "once": new_key(),
        "has_changed": has_changed,
        "refused": refused,
        "is_mine": found.release_requested_by == visit.principal.writer,
        "names": names_of(visit.principal, [found.placed_by, found.release_requested_by]),
    }
    status = 409 if has_changed or refused else 200
    return render_page(visit.request, "govern/hold_approve.html", context, status=status)


@require_POST
@in_tenant(*APPOINTING)
def withdraw(visit: Visit, hold_id: UUID) -> HttpResponse:
    found = _unreleased(visit, hold_id)
    try:
        with transaction.atomic():
            withdraw_release(principal=visit.principal, hold_id=str(found.id))
    except ReleaseRefused as error:
        messages.warning(visit.request, refusal_words(error))
    else:
        messages.success(visit.request, _("The request is withdrawn. The hold stays."))
    return HttpResponseRedirect(visit.url("hold", found.id))
