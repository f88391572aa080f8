"""Acting on one memory: confirm, fix, forget, widen. A form each, sent once, with a receipt; a refusal keeps the text."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from corrections.forms import ActForm, FixForm
from corrections.htmx import render_page, wants_fragment
from corrections.once import new_key, sent_once
from corrections.queries.affected import SHOWN_MOST, is_still, widening_of
from corrections.remembered import key_words, remembered, scope_words, value_of, value_words
from corrections.views.me_memory import own
from corrections.visit import Visit, in_tenant
from memory.actions.confirm_record import confirm_record
from memory.actions.correct import correct
from memory.actions.forget_record import forget_record
from memory.errors import DomainError, LegalHoldActive, RecordChanged
from memory.queries.records import record_by_id
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.record import Record
from memory.records.routes import find_route


def _mine(visit: Visit, record_id: str) -> Record:
    record = record_by_id(visit.principal, record_id)
    own(visit, record)
    return record


@require_POST
@in_tenant(about_self=True)
def confirm(visit: Visit, record_id: str) -> HttpResponse:
    """One press in the list or on the memory's page."""
    _mine(visit, record_id)

    def act() -> str:
        confirm_record(principal=visit.principal, record_id=record_id)
        return _back(visit)

    answer = sent_once(visit, act)
    words = _("Confirmed. Thank you.")
    if wants_fragment(visit.request):
        context = {
            "memory": remembered(_mine(visit, record_id)),
            "said": words,
            "once": new_key(),
            "here": _back(visit),
        }
        return render_page(visit.request, "me/_row.html", context, fragment="me/_row.html")
    messages.success(visit.request, words)
    return answer


def _back(visit: Visit) -> str:
    """Where the reader came from, with its filters; only ever on this site."""
    given = visit.request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(given, allowed_hosts=None) and given.startswith("/")
    return given if is_ours else visit.url("memory-list")


@require_http_methods(["GET", "POST"])
@in_tenant(about_self=True)
def correct_by_route(visit: Visit, record_id: str, route: str) -> HttpResponse:
    """The form of one named route. An external route's own form is elsewhere."""
    record = _mine(visit, record_id)
    found = find_route(visit.principal, route)
    if found is not None and found.url_template:
        return HttpResponseRedirect(found.url(visit.slug, record.id))
    handler = _ROUTES.get(route, _fix)
    return handler(visit, record)


def _fix(visit: Visit, record: Record, status: int = 200) -> HttpResponse:
    request = visit.request
    needs_case = not record.bindings
    if request.method != "POST":
        form = FixForm(
            initial={
                "new_value": value_words(record.value_text),
                "expect": record.id,
                "once": new_key(),
            },
            needs_case=needs_case,
        )
        return _fix_page(visit, record, form)
    form = FixForm(request.POST, needs_case=needs_case)
    if not form.is_valid():
        return _fix_page(visit, record, form, status=422)
    given = form.cleaned_data
    case = {given["case_name"]: given["case_value"]} if needs_case else record.bindings

    def act() -> str:
        corrected = correct(
            principal=visit.principal,
            asked=Correction(
                new_value=value_of(given["new_value"], record.value_text),
                context=read_context(case),
                record_id=record.id,
                expect=given["expect"] or None,
                reason=given["reason"] or None,
            ),
        )
        return _receipt_url(visit, corrected.receipt)

    return _try(visit, act, lambda error: _fix_page(visit, record, form, error=error, status=409))


def _fix_page(
    visit: Visit,
    record: Record,
    form: FixForm,
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "memory": remembered(record),
        "form": form,
        "scope": scope_words("instance", record.bindings) if record.bindings else None,
        **_conflict(visit, record, error),
    }
    return render_page(visit.request, "me/fix.html", context, status=status)


def _conflict(visit: Visit, record: Record, error: DomainError | None) -> dict[str, Any]:
    """What stands there now, when somebody else was first."""
    if error is None:
        return {"error": None}
    if not isinstance(error, RecordChanged) or error.active_id is None:
        return {"error": str(error)}
    now = record_by_id(visit.principal, error.active_id)
    return {"error": str(error), "now": remembered(now)}


def _try(
    visit: Visit, act: Callable[[], str], refused: Callable[[DomainError], HttpResponse]
) -> HttpResponse:
    """Do it once; what can't be done comes back as the form with the text kept, and nothing half done."""
    try:
        with transaction.atomic():
            return sent_once(visit, act)
    except (RecordChanged, LegalHoldActive) as error:
        return refused(error)


def _receipt_url(visit: Visit, receipt: Any) -> str:
    if receipt is None:
        messages.info(visit.request, _("It waits for a decision."))
        return visit.url("memory-list")
    return visit.url("receipt", receipt.number)


def _forget(visit: Visit, record: Record) -> HttpResponse:
    request = visit.request
    if request.method != "POST":
        form = ActForm(initial={"expect": record.id, "once": new_key()})
        return _forget_page(visit, record, form)
    form = ActForm(request.POST)
    if not form.is_valid():
        return _forget_page(visit, record, form, status=422)

    def act() -> str:
        forgotten = forget_record(
            principal=visit.principal,
            record_id=record.id,
            reason=form.cleaned_data["reason"] or None,
            with_undo=True,
        )
        return _receipt_url(visit, forgotten.receipt)

    return _try(
        visit, act, lambda error: _forget_page(visit, record, form, error=error, status=409)
    )


def _forget_page(
    visit: Visit,
    record: Record,
    form: ActForm,
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "memory": remembered(record),
        "form": form,
        "is_held": record.hold_count > 0,
        **_conflict(visit, record, error),
    }
    return render_page(visit.request, "me/forget.html", context, status=status)


def _confirm_page(visit: Visit, record: Record) -> HttpResponse:
    """The route `confirm` opened by its address: one button."""
    context = {"memory": remembered(record), "once": new_key()}
    return render_page(visit.request, "me/confirm.html", context)


_ROUTES: dict[str, Callable[[Visit, Record], HttpResponse]] = {
    "fix-value": _fix,
    "forget": _forget,
    "confirm": _confirm_page,
}


@require_POST
@in_tenant(about_self=True)
def widen(visit: Visit, record_id: str) -> HttpResponse:
    """Two steps on one address: the preview of the exact set, then the word that binds to it."""
    record = _mine(visit, record_id)
    request: HttpRequest = visit.request
    form = FixForm(request.POST, needs_case=False)
    if not form.is_valid():
        return _fix_page(
            visit, record, FixForm(request.POST, needs_case=not record.bindings), status=422
        )
    widening = widening_of(visit.principal, record, route="fix-value")
    seal = request.POST.get("seal")
    if seal is None:
        return _widen_page(visit, record, form, widening)
    if not is_still(widening, seal) or request.POST.get("count") != str(len(widening.affected)):
        return _widen_page(visit, record, form, widening, has_changed=True, status=409)
    given = form.cleaned_data

    def act() -> str:
        corrected = correct(
            principal=visit.principal,
            asked=Correction(
                new_value=value_of(given["new_value"], record.value_text),
                context=read_context(
                    {"broaden_to": {"level": record.level, "bindings": record.bindings}}
                ),
                record_id=record.id,
                broaden=True,
                expect=record.id,
                reason=given["reason"] or None,
            ),
        )
        return _receipt_url(visit, corrected.receipt)

    return _try(
        visit,
        act,
        lambda error: _widen_page(visit, record, form, widening, has_changed=True, status=409),
    )


def _widen_page(
    visit: Visit,
    record: Record,
    form: FixForm,
    widening: Any,
    *,
    has_changed: bool = False,
    status: int = 200,
) -> HttpResponse:
    context = {
        "memory": remembered(record),
        "form": form,
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
        "has_changed": has_changed,
        "applies": scope_words(record.level, record.bindings),
    }
    return render_page(visit.request, "me/widen.html", context, status=status)
