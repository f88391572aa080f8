"""Webhooks, for admins: who hears of what, whether they do, a new one, and one as it is."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms_webhooks import DeliveriesFilter, ReplayForm, WebhookForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address, chips
from corrections.proof import must_be_proved
from corrections.visit import APPOINTING, Visit, in_tenant
from corrections.webhook_words import DELIVERY_STATES, EVENT_WORDS, FAILURES, WEBHOOK_STATES
from corrections.words import Badge
from memory.actions.keep_webhooks import change_webhook, register_webhook
from memory.errors import BadInput
from memory.instants import instant
from memory.webhooks.store import (
    DeliveryView,
    WebhookView,
    delivery_counts,
    find_webhook,
    list_deliveries,
    list_webhooks,
)

WEBHOOKS_A_PAGE = 40
DELIVERIES_A_PAGE = 40


def badge_of(webhook: WebhookView) -> Badge:
    """How a webhook is, in a word."""
    failing = "retrying" if webhook.failing_since is not None else ""
    return WEBHOOK_STATES[webhook.disabled_because or failing]


def words_of(events: Sequence[str]) -> list[Any]:
    return [EVENT_WORDS.get(name, name) for name in events]


@require_GET
@in_tenant(*APPOINTING)
def webhooks(visit: Visit) -> HttpResponse:
    position = _position(visit.request.GET.get("after", ""))
    tenant_id = visit.principal.tenant_id
    listed = list_webhooks(tenant_id, after=position, limit=WEBHOOKS_A_PAGE + 1)
    found = listed[:WEBHOOKS_A_PAGE]
    counts = delivery_counts(tenant_id, [one.id for one in found])
    rows = [
        {
            "webhook": one,
            "badge": badge_of(one),
            "events": words_of(one.events),
            "counts": counts[one.id],
        }
        for one in found
    ]
    has_more = len(listed) > WEBHOOKS_A_PAGE
    last = f"{found[-1].wire()['createdAt']}~{found[-1].id}" if has_more else None
    context = {
        "rows": rows,
        "older": address(visit.request, after=last) if has_more else None,
        "newest": address(visit.request, drop=("after",)) if position else None,
    }
    return render_page(visit.request, "govern/webhooks.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_webhook(visit: Visit) -> HttpResponse:
    request = visit.request
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        must_be_proved(visit)
        told: list[tuple[WebhookView, str]] = []

        def register() -> str:
            told.append(register_webhook(principal=visit.principal, **form.cleaned_data))
            return visit.url("webhook", told[0][0].id)

        try:
            with transaction.atomic():
                led = sent_once(visit, register)
        except BadInput as error:
            _refuse(form, error)
        else:
            return show_secret(visit, *told[0]) if told else led
    return _form_page(visit, form, None)


def show_secret(visit: Visit, webhook: WebhookView, secret: str) -> HttpResponse:
    """The secret, this once: it is in this answer and nowhere else that could be read."""
    context = {"webhook": webhook, "secret": secret}
    return render_page(visit.request, "govern/webhook_secret.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def edit_webhook(visit: Visit, webhook_id: UUID) -> HttpResponse:
    request = visit.request
    found = find_webhook(visit.principal.tenant_id, webhook_id)
    initial = {"name": found.name, "url": found.url, "events": found.events}
    form = WebhookForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_bound and form.is_valid():
        must_be_proved(visit)
        try:
            with transaction.atomic():
                change_webhook(
                    principal=visit.principal, webhook_id=webhook_id, **form.cleaned_data
                )
        except BadInput as error:
            _refuse(form, error)
        else:
            messages.success(request, _("Saved."))
            return HttpResponseRedirect(visit.url("webhook", webhook_id))
    return _form_page(visit, form, found)


def _form_page(visit: Visit, form: WebhookForm, found: WebhookView | None) -> HttpResponse:
    context = {"form": form, "webhook": found, "once": new_key()}
    status = 422 if form.errors else 200
    return render_page(visit.request, "govern/webhook_form.html", context, status=status)


def _refuse(form: WebhookForm, error: BadInput) -> None:
    for issue in error.issues:
        name = issue["path"].strip("/")
        form.add_error(name if name in form.fields else None, issue["message"])


@require_GET
@in_tenant(*APPOINTING)
def webhook(visit: Visit, webhook_id: UUID) -> HttpResponse:
    return webhook_page(visit, webhook_id, ReplayForm())


def webhook_page(
    visit: Visit, webhook_id: UUID, replay: ReplayForm, *, status: int = 200
) -> HttpResponse:
    """One webhook with its deliveries. Raises WebhookNotFound."""
    request = visit.request
    found = find_webhook(visit.principal.tenant_id, webhook_id)
    form = DeliveriesFilter(request.GET)
    position = _position(request.GET.get("after", ""))
    deliveries = (
        []
        if form.is_bad
        else list_deliveries(
            visit.principal.tenant_id,
            found.id,
            status=form.wanted().get("status"),
            after=position,
            limit=DELIVERIES_A_PAGE + 1,
        )
    )
    shown = deliveries[:DELIVERIES_A_PAGE]
    last = shown[-1].wire()["queuedAt"] + "~" + str(shown[-1].id) if shown else None
    has_more = len(deliveries) > DELIVERIES_A_PAGE
    context = {
        "webhook": found,
        "badge": badge_of(found),
        "events": words_of(found.events),
        "form": form,
        "chips": chips(request, form),
        "rows": [_row(one) for one in shown],
        "older": address(request, after=last) if has_more else None,
        "newest": address(request, drop=("after",)) if position else None,
        "clear_url": request.path,
        "replay": replay,
        "once": new_key(),
    }
    return render_page(
        request, "govern/webhook.html", context, fragment="govern/_deliveries.html", status=status
    )


def _row(one: DeliveryView) -> dict[str, Any]:
    return {
        "delivery": one,
        "badge": DELIVERY_STATES[one.status],
        "event": EVENT_WORDS.get(one.event_type, one.event_type),
        "failure": FAILURES.get(one.last_error or "", ""),
    }


def _position(text: str) -> tuple[str, str] | None:
    """Where the list goes on; None for what is no such place."""
    at, _mark, delivery_id = text.partition("~")
    try:
        return (str(instant(at)), str(UUID(delivery_id)))
    except ValueError:
        return None
