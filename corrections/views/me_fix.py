"""Fix what a memory says: for the case at hand, or, after a look at the exact set, everywhere it applies."""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _

from corrections.acting import conflict, correctable_record, done_once, own_record, receipt_url
from corrections.falling_words import told
from corrections.forms_fix import FixForm
from corrections.htmx import render_page
from corrections.once import new_key
from corrections.post_only import post_only
from corrections.proof import must_be_proved, needs_account
from corrections.queries.affected import SHOWN_MOST, Widening, is_still, widening_of
from corrections.queries.cases import kinds_of_case
from corrections.refusal_words import refusal_words
from corrections.remembered import key_words, remembered, scope_words, value_of, value_words
from corrections.visit import Visit, in_tenant
from memory.actions.act_on_route import Form, act_on_route
from memory.errors import DomainError, LegalHoldActive, RecordNotFound
from memory.records import clock
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.receipts import undo_deadline
from memory.records.record import Record
from memory.records.routes import BUILT_IN, Route
from memory.records.shape import value_text

_FIX_VALUE = BUILT_IN["fix-value"]


def fix(visit: Visit, record: Record, route: Route) -> HttpResponse:
    """The form of `fix-value`, and of a tenant's own routes, which correct the value too."""
    if visit.request.method != "POST":
        initial = {
            "new_value": value_words(record.value_text),
            "expect": record.id,
            "once": new_key(),
        }
        return _page(visit, record, route, _form(visit, record, {}, initial=initial))
    case = _case_of(visit, record, visit.request.POST.get("case_of", ""))
    form = _form(visit, record, case, data=visit.request.POST)
    if not form.is_valid():
        return _page(visit, record, route, form, status=422)
    given = form.cleaned_data

    def act() -> str:
        correction = Correction(
            new_value=value_of(given["new_value"], record.value_text),
            context=read_context(given["case"] if form.needs_case else case),
            record_id=record.id,
            expect=given["expect"] or None,
            reason=given["reason"] or None,
            route=route.name,
        )
        filled = Form(reason=given["reason"] or None, correction=correction)
        acted = act_on_route(
            principal=visit.principal, record_id=record.id, name=route.name, form=filled
        )
        return receipt_url(visit, acted.receipt, record)

    return done_once(
        visit, act, lambda error: _page(visit, record, route, form, error=error, status=409)
    )


def _case_of(visit: Visit, record: Record, seen_id: str) -> dict[str, Any]:
    """The case that the record is bound to; or, when somebody widened what the reader corrects, that of what they saw."""
    if record.bindings or not seen_id:
        return record.bindings
    try:
        seen = correctable_record(visit, seen_id)
    except RecordNotFound:
        return {}
    is_same = (seen.subject_type, seen.subject_id, seen.key) == (
        record.subject_type,
        record.subject_id,
        record.key,
    )
    return seen.bindings if is_same else {}


def _form(visit: Visit, record: Record, case: dict[str, Any], **given: Any) -> FixForm:
    needs_case = not record.bindings and not case
    kinds = kinds_of_case(visit.principal, record) if needs_case else []
    return FixForm(needs_case=needs_case, kinds=kinds, **given)


def _page(
    visit: Visit,
    record: Record,
    route: Route,
    form: FixForm,
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    refused = conflict(visit, error, record)
    if "now" in refused:
        return _second(visit, record, route, refused)
    case = _case_of(visit, record, visit.request.POST.get("case_of", ""))
    context = {
        "memory": remembered(record),
        "route": route,
        "form": form,
        "scope": scope_words("instance", case) if case else None,
        "falls": told(visit, record, route.name) if record.bindings else None,
        "mine": visit.request.POST.get("new_value", ""),
        **refused,
    }
    return render_page(visit.request, "me/fix.html", context, status=status)


def _second(visit: Visit, seen: Record, route: Route, refused: dict[str, Any]) -> HttpResponse:
    """Somebody else was first: what was there, theirs and mine, and the form on top of theirs."""
    record: Record = refused["now"].record
    data = visit.request.POST.copy()
    data["expect"], data["once"] = record.id, new_key()
    if seen.bindings and not record.bindings:
        data["case_of"] = seen.id
    case = _case_of(visit, record, data.get("case_of", ""))
    context = {
        "memory": refused["now"],
        "route": route,
        "form": _form(visit, record, case, data=data),
        "scope": scope_words("instance", case) if case else None,
        "falls": told(visit, record, route.name) if record.bindings else None,
        "mine": data.get("new_value", ""),
        "sends": [
            (name, value)
            for name, value in data.items()
            if name
            in ("new_value", "reason", "expect", "case_of", "case_name", "case_other", "case_value")
        ],
        "second_once": new_key(),
        **refused,
    }
    return render_page(visit.request, "me/fix.html", context, status=409)


@post_only("correct", "record_id", "fix-value")
@in_tenant(about_self=True)
def widen(visit: Visit, record_id: str) -> HttpResponse:
    """Two steps on one address: the preview of the exact set, then the word that binds to it."""
    record = own_record(visit, record_id)
    request = visit.request
    if visit.is_guest:
        return needs_account(visit)
    form = FixForm(request.POST, needs_case=False)
    if not form.is_valid():
        again = _form(visit, record, {}, data=request.POST)
        return _page(visit, record, _FIX_VALUE, again, status=422)
    new_value = value_of(form.cleaned_data["new_value"], record.value_text)
    widening = widening_of(
        visit.principal, record, route=_FIX_VALUE.name, new_text=value_text(new_value)
    )
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
            new_value=new_value,
            context=read_context({"broaden_to": broaden_to}),
            record_id=record.id,
            broaden=True,
            expect=record.id,
            seen=[one.id for one in widening.affected],
            reason=given["reason"] or None,
        )
        filled = Form(reason=given["reason"] or None, correction=correction)
        acted = act_on_route(
            principal=visit.principal, record_id=record.id, name=_FIX_VALUE.name, form=filled
        )
        return receipt_url(visit, acted.receipt, record)

    def refused(error: DomainError) -> HttpResponse:
        is_held = isinstance(error, LegalHoldActive)
        words = refusal_words(error) if is_held else _changed()
        return _preview(visit, record, form, widening, refused=words)

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
        "undo_until": undo_deadline(visit.principal.tenant_id, clock.now()),
    }
    status = 409 if refused else 200
    return render_page(visit.request, "me/widen.html", context, status=status)
