"""Erasures, for admins: what one would reach, asking for it, how far it is, and the ledger to keep elsewhere."""

import json
from datetime import UTC, datetime

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corrections.acting import done_once
from corrections.erasure_words import (
    KIND_SHORT,
    KIND_WORDS,
    counts_of,
    phases_of,
    reason_of,
    remains_of,
    state_of,
)
from corrections.forms import ID_MAX
from corrections.htmx import render_page
from corrections.once import new_key
from corrections.paging import address, place_of, posted
from corrections.proof import must_be_proved
from corrections.queries.names import names_of
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.cancel_erasure import cancel_erasure
from memory.actions.create_erasure import create_erasure
from memory.actions.replay_erasures import resume_erasure
from memory.erasure.ledger import find_erasure, list_erasures, whole_ledger
from memory.erasure.preview import preview_erasure
from memory.errors import DomainError, ErasureNotHeldUp
from memory.page_maintenance import standing

ERASURES_A_PAGE = 40


class ErasureForm(forms.Form):
    kind = forms.ChoiceField(
        label=gettext_lazy("What to erase"), widget=forms.RadioSelect, choices=[*KIND_WORDS.items()]
    )
    selector = forms.CharField(
        label=gettext_lazy("Its id"),
        max_length=ID_MAX,
        help_text=gettext_lazy("Exactly as applications and agents write it."),
    )
    once = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)


@require_GET
@in_tenant(*APPOINTING)
def erasures(visit: Visit) -> HttpResponse:
    last = place_of(visit.request)
    position = None
    if last is not None:
        position = (find_erasure(visit.principal.tenant_id, last).created_at.isoformat(), last)
    found = list_erasures(visit.principal.tenant_id, after=position, limit=ERASURES_A_PAGE + 1)
    shown = found[:ERASURES_A_PAGE]
    context = {
        "rows": [
            {"erasure": one, "badge": state_of(one), "kind": KIND_SHORT[one.kind]} for one in shown
        ],
        "names": names_of(visit.principal, (one.requested_by for one in shown)),
        "older": address(visit.request, after=shown[-1].id)
        if len(found) > ERASURES_A_PAGE
        else None,
        "newest": address(visit.request, drop=("after",)) if last else None,
    }
    return render_page(visit.request, "govern/erasures.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_erasure(visit: Visit) -> HttpResponse:
    """First what it would reach, then, by a second press, the erasure itself."""
    form = ErasureForm(posted(visit.request), initial={"kind": "user"})
    if form.is_bound and form.is_valid() and "start" in visit.request.POST:
        must_be_proved(visit)
        return done_once(
            visit, lambda: _started(visit, form), lambda error: _asked(visit, form, error)
        )
    return _asked(visit, form)


def _started(visit: Visit, form: ErasureForm) -> str:
    given = form.cleaned_data
    erasure = create_erasure(
        principal=visit.principal, kind=given["kind"], selector_id=given["selector"]
    )
    messages.success(visit.request, _("The erasure is asked for. Nothing new is written about it."))
    return visit.url("erasure", erasure.id)


def _asked(visit: Visit, form: ErasureForm, refusal: DomainError | None = None) -> HttpResponse:
    reach = None
    if form.is_bound and form.is_valid():
        given = form.cleaned_data
        reach = preview_erasure(visit.principal, given["kind"], given["selector"])
    context = {
        "form": form,
        "reach": reach,
        "kind": KIND_SHORT.get(form["kind"].value() or ""),
        "refusal": refusal,
        "once": new_key(),
    }
    status = 409 if refusal else 422 if form.errors else 200
    return render_page(visit.request, "govern/new_erasure.html", context, status=status)


@require_GET
@in_tenant(*APPOINTING)
def erasure(visit: Visit, erasure_id: str) -> HttpResponse:
    found = find_erasure(visit.principal.tenant_id, erasure_id)
    context = {
        "erasure": found,
        "badge": state_of(found),
        "kind": KIND_SHORT[found.kind],
        "phases": phases_of(found),
        "counts": counts_of(found),
        "reason": reason_of(found),
        "is_over": found.status == "completed",
        "reached_nothing": not found.counts,
        "remains": remains_of(found, standing()),
        "names": names_of(visit.principal, [found.requested_by]),
    }
    return render_page(
        visit.request, "govern/erasure.html", context, fragment="govern/_erasure.html"
    )


@require_POST
@in_tenant(*APPOINTING)
def resume(visit: Visit, erasure_id: str) -> HttpResponse:
    must_be_proved(visit)
    resume_erasure(principal=visit.principal, erasure_id=str(erasure_id))
    messages.success(visit.request, _("The worker tries it again now."))
    return HttpResponseRedirect(visit.url("erasure", erasure_id))


@require_POST
@in_tenant(*APPOINTING)
def cancel(visit: Visit, erasure_id: str) -> HttpResponse:
    must_be_proved(visit)
    try:
        cancel_erasure(principal=visit.principal, erasure_id=str(erasure_id))
        messages.success(
            visit.request, _("The erasure is cancelled. What it cleared stays cleared.")
        )
    except ErasureNotHeldUp:
        messages.error(visit.request, _("No hold stops it any more, so it was not cancelled."))
    return HttpResponseRedirect(visit.url("erasure", erasure_id))


@require_GET
@in_tenant(*APPOINTING)
def ledger(visit: Visit) -> HttpResponse:
    """The ledger as the API exports it: keyed hashes, no ids of people."""
    data = [one.ledger_entry() for one in whole_ledger(visit.principal.tenant_id)]
    response = HttpResponse(
        json.dumps({"erasures": data}, indent=1) + "\n", content_type="application/json"
    )
    name = f"erasures-{visit.slug}-{datetime.now(UTC):%Y-%m-%d}.json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
