"""Acting on one memory by a named route: a form each, sent once, with a receipt; a refusal keeps the text. And undoing."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from corrections.acting import (
    conflict,
    correctable_record,
    done_once,
    receipt_url,
)
from corrections.addresses import came_from
from corrections.falling_words import prefixes_in_words, told
from corrections.forms import ActForm, DisputeForm, NeverInferForm, OutOfDateForm
from corrections.htmx import render_page, wants_fragment
from corrections.once import led_before, new_key
from corrections.post_only import post_only
from corrections.queries.my_receipts import my_receipt
from corrections.queries.standing import standing_of
from corrections.remembered import remembered
from corrections.views.me_fix import fix
from corrections.views.me_receipts import receipt_page
from corrections.visit import Visit, in_tenant
from memory.actions.act_on_route import Form, act_on_route
from memory.actions.undo_receipt import undo_receipt
from memory.errors import DomainError, RecordNotFound, RouteNotFound
from memory.queries.records import today_of
from memory.records import clock
from memory.records.receipts import undo_deadline
from memory.records.record import Record
from memory.records.routes import BUILT_IN, Route, find_route


@post_only("correct", "record_id", "confirm")
@in_tenant()
def confirm(visit: Visit, record_id: str) -> HttpResponse:
    """One press in the list or on the memory's page."""
    record = correctable_record(visit, record_id)

    def act() -> str:
        act_on_route(principal=visit.principal, record_id=record_id, name="confirm", form=Form())
        return back_of(visit)

    def refused(error: DomainError) -> HttpResponse:
        if wants_fragment(visit.request):
            # A row has no room for what there is to choose from.
            answer = HttpResponse(status=204)
            answer["HX-Redirect"] = visit.url("correct", record_id, "confirm")
            return answer
        form = ActForm(initial={"expect": record_id, "once": new_key()})
        return _page(visit, record, BUILT_IN["confirm"], form, error=error, status=409)

    answer = done_once(visit, act, refused)
    if answer.status_code != 302:
        return answer
    words = _("Confirmed. Thank you.")
    if wants_fragment(visit.request):
        context = {
            "memory": remembered(correctable_record(visit, record_id)),
            "said": words,
            "once": new_key(),
            "here": back_of(visit),
        }
        return render_page(visit.request, "me/_row.html", context, fragment="me/_row.html")
    messages.success(visit.request, words)
    return answer


def back_of(visit: Visit) -> str:
    """Where the reader came from, with its filters; only ever on this site."""
    return came_from(visit.request) or visit.url("memory-list")


@require_http_methods(["GET", "POST"])
@in_tenant()
def correct_by_route(visit: Visit, record_id: str, route: str) -> HttpResponse:
    """The form of one named route. An outside route's own form is elsewhere."""
    try:
        record = correctable_record(visit, record_id)
    except RecordNotFound:
        before = led_before(visit)
        if before is None:
            raise
        return before
    return _by_route(visit, record, route)


def _by_route(visit: Visit, record: Record, route: str) -> HttpResponse:
    found = find_route(visit.principal, route)
    if found is None:
        raise RouteNotFound
    if found.audience != "person":
        messages.info(visit.request, _("An admin corrects this. Here is what you can do yourself."))
        return HttpResponseRedirect(visit.onward("memory", record.id))
    if found.url_template:
        return HttpResponseRedirect(found.url(visit.slug, record.id))
    if visit.request.method != "POST" and not _is_open(record, route):
        return over(visit, record)
    if route == "confirm" and visit.request.method != "POST":
        context = {"memory": remembered(record), "once": new_key()}
        return render_page(visit.request, "me/confirm.html", context)
    make_form = _FORMS.get(route)
    if make_form is None:
        return fix(visit, record, found)
    return _act(visit, record, found, make_form)


def _is_open(record: Record, route: str) -> bool:
    """Whether the route can do anything with the record as it is. What is over can still be forgotten with its versions."""
    shown = remembered(record)
    if route == "forget":
        return record.status != "deleted"
    is_rule = shown.state == "policy"
    return shown.is_live and not (is_rule and _FORMS.get(route) is None)


def over(visit: Visit, record: Record) -> HttpResponse:
    """Instead of a form for what is not in use, or is corrected elsewhere: what became of it, and where to go on."""
    context = {
        "memory": remembered(record),
        "record": record,
        "standing": standing_of(visit.principal, record.id),
    }
    return render_page(visit.request, "me/over.html", context)


def _never_infer_form(visit: Visit, record: Record, **given: Any) -> ActForm:
    given.setdefault("initial", {})["prefix"] = record.key
    return NeverInferForm(prefixes=prefixes_in_words(visit, record), **given)


_FORMS: dict[str, Callable[..., ActForm]] = {
    "confirm": lambda visit, record, **given: ActForm(**given),
    "out-of-date": lambda visit, record, **given: OutOfDateForm(**given),
    "wrong-person": lambda visit, record, **given: ActForm(**given),
    "dispute": lambda visit, record, **given: DisputeForm(**given),
    "forget": lambda visit, record, **given: ActForm(**given),
    "never-infer": _never_infer_form,
}
_FIELDS = ("since", "statement", "prefix")


def _act(
    visit: Visit, record: Record, route: Route, make_form: Callable[..., ActForm]
) -> HttpResponse:
    if visit.request.method != "POST":
        initial = {"expect": record.id, "once": new_key(), "since": today_of(visit.principal)}
        return _page(visit, record, route, make_form(visit, record, initial=initial))
    form = make_form(visit, record, data=visit.request.POST)
    if not form.is_valid():
        return _page(visit, record, route, form, status=422)
    given = form.cleaned_data

    def act() -> str:
        fields = {name: given[name] for name in _FIELDS if given.get(name)}
        filled = Form(fields=fields, reason=given.get("reason") or None)
        acted = act_on_route(
            principal=visit.principal, record_id=record.id, name=route.name, form=filled
        )
        return receipt_url(visit, acted.receipt, record)

    return done_once(
        visit, act, lambda error: _page(visit, record, route, form, error=error, status=409)
    )


def _page(
    visit: Visit,
    record: Record,
    route: Route,
    form: ActForm,
    *,
    error: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    refused = conflict(visit, error, record)
    if "now" in refused:
        # The form goes on with what stands there now, its text kept.
        record = refused["now"].record
        data = visit.request.POST.copy()
        data["expect"], data["once"] = record.id, new_key()
        form = _FORMS[route.name](visit, record, data=data)
    now = clock.now()
    context = {
        "memory": remembered(record),
        "route": route,
        "form": form,
        "is_held": record.hold_count > 0,
        "falls": told(visit, record, route.name),
        "undo_until": undo_deadline(visit.principal.tenant_id, now),
        **refused,
    }
    return render_page(visit.request, "me/route.html", context, status=status)


@post_only("receipt", "number")
@in_tenant(about_self=True)
def undo(visit: Visit, number: str) -> HttpResponse:
    """Undo what a receipt tells of; what is over stays as it is and the receipt says why."""
    my_receipt(visit.principal, number)

    def act() -> str:
        undone = undo_receipt(principal=visit.principal, number=number)
        return receipt_url(visit, undone.receipt)

    return done_once(visit, act, lambda error: receipt_page(visit, number, error=error))
