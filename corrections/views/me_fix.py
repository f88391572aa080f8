"""Fix what a memory says: for the case at hand, or, after a look at the exact set, everywhere it applies."""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from corrections.acting import conflict, done_once, own_record, receipt_url
from corrections.forms import FixForm
from corrections.htmx import render_page
from corrections.once import new_key
from corrections.proof import must_be_proved, needs_account
from corrections.queries.affected import SHOWN_MOST, Widening, is_still, widening_of
from corrections.remembered import key_words, remembered, scope_words, value_of, value_words
from corrections.visit import Visit, in_tenant
from memory.actions.act_on_route import Form, act_on_route
from memory.errors import DomainError, LegalHoldActive
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.record import Record
from memory.records.routes import BUILT_IN, Route

_FIX_VALUE = BUILT_IN["fix-value"]


def fix(visit: Visit, record: Record, route: Route) -> HttpResponse:
    """The form of `fix-value`, and of a tenant's own routes, which correct the value too."""
    needs_case = not record.bindings
    if visit.request.method != "POST":
        initial = {
            "new_value": value_words(record.value_text),
            "expect": record.id,
            "once": new_key(),
        }
        return _page(visit, record, route, FixForm(initial=initial, needs_case=needs_case))
    form = FixForm(visit.request.POST, needs_case=needs_case)
    if not form.is_valid():
        return _page(visit, record, route, form, status=422)
    given = form.cleaned_data
    case = {given["case_name"]: given["case_value"]} if needs_case else record.bindings

    def act() -> str:
        correction = Correction(
            new_value=value_of(given["new_value"], record.value_text),
            context=read_context(case),
            record_id=record.id,
            expect=given["expect"] or None,
            reason=given["reason"] or None,
            route=route.name,
        )
        form = Form(reason=given["reason"] or None, correction=correction)
        acted = act_on_route(
            principal=visit.principal, record_id=record.id, name=route.name, form=form
        )
        return receipt_url(visit, acted.receipt, record)

    return done_once(
        visit, act, lambda error: _page(visit, record, route, form, error=error, status=409)
    )


def _page(
    visit: Visit,
    record: Record,
    route: Route,
    form: FixForm,
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "memory": remembered(record),
        "route": route,
        "form": form,
        "scope": scope_words("instance", record.bindings) if record.bindings else None,
        **conflict(visit, error),
    }
    return render_page(visit.request, "me/fix.html", context, status=status)


@require_POST
@in_tenant(about_self=True)
def widen(visit: Visit, record_id: str) -> HttpResponse:
    """Two steps on one address: the preview of the exact set, then the word that binds to it."""
    record = own_record(visit, record_id)
    request = visit.request
    if visit.is_guest:
        return needs_account(visit)
    form = FixForm(request.POST, needs_case=False)
    if not form.is_valid():
        again = FixForm(request.POST, needs_case=not record.bindings)
        return _page(visit, record, _FIX_VALUE, again, status=422)
    widening = widening_of(visit.principal, record, route=_FIX_VALUE.name)
    seal = request.POST.get("seal")
    if seal is None:
        return _preview(visit, record, form, widening)
    if not is_still(widening, seal):
        return _preview(visit, record, form, widening, refused=_changed())
    if request.POST.get("count", "").strip() != str(len(widening.affected)):
        miscounted = _("That is not how many will stop being used. Nothing was saved. Look again:")
        return _preview(visit, record, form, widening, refused=miscounted)
    must_be_proved(visit)
    given = form.cleaned_data

    def act() -> str:
        broaden_to = {"level": widening.level, "bindings": widening.bindings}
        correction = Correction(
            new_value=value_of(given["new_value"], record.value_text),
            context=read_context({"broaden_to": broaden_to}),
            record_id=record.id,
            broaden=True,
            expect=record.id,
            seen=[one.id for one in widening.affected],
            reason=given["reason"] or None,
        )
        form = Form(reason=given["reason"] or None, correction=correction)
        acted = act_on_route(
            principal=visit.principal, record_id=record.id, name=_FIX_VALUE.name, form=form
        )
        return receipt_url(visit, acted.receipt, record)

    def refused(error: DomainError) -> HttpResponse:
        told = conflict(visit, error)["error"] if isinstance(error, LegalHoldActive) else _changed()
        return _preview(visit, record, form, widening, refused=told)

    return done_once(visit, act, refused)


def _changed() -> str:
    return _(
        "What would change is not what you were shown any more. Nothing was saved. Look again:"
    )


def _preview(
    visit: Visit,
    record: Record,
    form: FixForm,
    widening: Widening,
    *,
    refused: str = "",
) -> HttpResponse:
    context: dict[str, Any] = {
        "memory": remembered(record),
        "new_value": form.cleaned_data["new_value"],
        "reason": form.cleaned_data["reason"],
        "once": new_key(),
        "seal": widening.seal,
        "count": len(widening.affected),
        "shown": [
            (one.id, key_words(one.key), value_words(one.value_text))
            for one in widening.affected[:SHOWN_MOST]
        ],
        "untouched": widening.untouched,
        "refused": refused,
        "applies": scope_words(widening.level, widening.bindings),
    }
    status = 409 if refused else 200
    return render_page(visit.request, "me/widen.html", context, status=status)
