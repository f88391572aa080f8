"""Placing a legal hold, step by step: matter, scope, a look at what it would keep, then the press that places it.

Each step is an address that can be gone back to; nothing is kept before the last. What would be kept is not bound to the look: a
hold must be placed at once, also while agents go on writing, and it catches what came meanwhile.
"""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms_holds import MatterForm, PlaceHoldForm, ScopeForm
from corrections.hold_words import scope_lines
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.views.admin_holds import today
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.place_hold import place_hold
from memory.errors import BadInput
from memory.holds import REVIEW_AFTER_DAYS, Hold
from memory.queries.hold_impact import SOON_DAYS, first_named, placing_impact

SHOWN_MOST = 20


@require_GET
@in_tenant(*APPOINTING)
def matter(visit: Visit) -> HttpResponse:
    form = MatterForm(initial={"matter": visit.request.GET.get("matter", "")[:200]})
    return _matter_page(visit, form)


def _matter_page(visit: Visit, form: MatterForm, *, status: int = 200) -> HttpResponse:
    return render_page(visit.request, "govern/hold_matter.html", {"form": form}, status=status)


@require_GET
@in_tenant(*APPOINTING)
def scope(visit: Visit) -> HttpResponse:
    given = visit.request.GET
    named = MatterForm(given)
    if not named.is_valid():
        return _matter_page(visit, named, status=422)
    form = ScopeForm(initial={name: given.get(name, "") for name in ScopeForm.base_fields})
    return _scope_page(visit, form, named.cleaned_data["matter"])


def _scope_page(visit: Visit, form: ScopeForm, matter: str, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "matter": matter, "back": _step("place-hold", visit, matter=matter)}
    return render_page(visit.request, "govern/hold_scope.html", context, status=status)


def _step(name: str, visit: Visit, **more: Any) -> str:
    return f"{visit.url(name)}?{urlencode(more)}"


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def preview(visit: Visit) -> HttpResponse:
    """What the scope in the address would keep; a press places it."""
    named = MatterForm(visit.request.GET)
    if not named.is_valid():
        return _matter_page(visit, named, status=422)
    scoped = ScopeForm(visit.request.GET)
    if not scoped.is_valid():
        return _scope_page(visit, scoped, named.cleaned_data["matter"], status=422)
    if visit.request.method != "POST":
        review_on = today() + timedelta(days=REVIEW_AFTER_DAYS)
        form = PlaceHoldForm(initial={"review_on": review_on, "once": new_key()})
        return _preview_page(visit, scoped, form)
    form = PlaceHoldForm(visit.request.POST)
    if not form.is_valid():
        return _preview_page(visit, scoped, form, status=422)
    try:
        with transaction.atomic():
            return sent_once(visit, lambda: _place(visit, scoped, form))
    except BadInput:
        form.add_error("review_on", _("Choose a day that is still to come."))
        return _preview_page(visit, scoped, form, status=422)


def _place(visit: Visit, scoped: ScopeForm, form: PlaceHoldForm) -> str:
    hold = place_hold(
        principal=visit.principal,
        matter=scoped.cleaned_data["matter"],
        reason=form.cleaned_data["reason"],
        scope=scoped.cleaned_data["scope"],
        review_on=form.cleaned_data["review_on"],
    )
    tell = messages.warning if _keeps_nothing(hold) else messages.success
    tell(visit.request, _in_force(hold))
    return visit.url("hold", hold.id)


def _keeps_nothing(hold: Hold) -> bool:
    return hold.is_taken_in and hold.fact_count + hold.record_count == 0


def _in_force(hold: Hold) -> str:
    if _keeps_nothing(hold):
        return _(
            "The hold is in force, and keeps no fact and no memory now. Are the names in it written exactly so?"
        )
    if not hold.is_taken_in:
        return _(
            "The hold is in force and keeps all that it names. It names much: how many is being counted."
        )
    kept = hold.fact_count + hold.record_count
    words = ngettext(
        "The hold is in force. It keeps %(n)d fact or memory.",
        "The hold is in force. It keeps %(n)d facts and memories.",
        kept,
    )
    return words % {"n": kept}


def _preview_page(
    visit: Visit, scoped: ScopeForm, form: PlaceHoldForm, *, status: int = 200
) -> HttpResponse:
    tenant_id, given = visit.principal.tenant_id, scoped.cleaned_data["scope"]
    impact = placing_impact(tenant_id, given, soon_day=today() + timedelta(days=SOON_DAYS))
    context = {
        "matter": scoped.cleaned_data["matter"],
        "scope": scope_lines(given.text()),
        "impact": impact,
        "total": impact.facts + impact.records,
        "shown": first_named(tenant_id, given, limit=SHOWN_MOST),
        "form": form,
        "back": f"{visit.url('place-hold-scope')}?{visit.request.GET.urlencode()}",
        "covers_future": given.covers_future,
    }
    return render_page(visit.request, "govern/hold_preview.html", context, status=status)
