"""What admins do with one webhook: pause it and let it go on, try it, give it another secret, tell it again, remove it."""

from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from corrections.forms_webhooks import ReplayForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.proof import must_be_proved
from corrections.views.admin_webhooks import show_secret, webhook_page
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.keep_webhooks import (
    change_webhook,
    remove_webhook,
    rotate_webhook_secret,
    try_webhook,
)
from memory.actions.replay_deliveries import replay_deliveries
from memory.errors import WebhookDisabled
from memory.webhooks.store import WebhookView, find_webhook


@require_POST
@in_tenant(*APPOINTING)
def switch_webhook(visit: Visit, webhook_id: UUID) -> HttpResponse:
    """Pause it, or let it go on: the button says which."""
    enabled = visit.request.POST.get("enabled") == "1"
    change_webhook(principal=visit.principal, webhook_id=webhook_id, enabled=enabled)
    said = _("It is on again.") if enabled else _("Paused: nothing is sent to it.")
    return _back(visit, webhook_id, said)


@require_POST
@in_tenant(*APPOINTING)
def test_webhook(visit: Visit, webhook_id: UUID) -> HttpResponse:
    def act() -> str:
        try:
            with transaction.atomic():
                try_webhook(principal=visit.principal, webhook_id=webhook_id)
        except WebhookDisabled:
            messages.error(visit.request, _("It is off. Let it go on first."))
        else:
            messages.success(
                visit.request, _("A test is on its way. Its outcome is below in a moment.")
            )
        return visit.url("webhook", webhook_id)

    return sent_once(visit, act)


test_webhook.__test__ = False  # type: ignore[attr-defined]  # a page, whatever its name


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def webhook_secret(visit: Visit, webhook_id: UUID) -> HttpResponse:
    """Ask first, then give another secret and show it this once."""
    found = find_webhook(visit.principal.tenant_id, webhook_id)
    must_be_proved(visit)
    if visit.request.method == "GET":
        context = {"webhook": found, "secret": None, "once": new_key()}
        return render_page(visit.request, "govern/webhook_secret.html", context)
    told: list[tuple[WebhookView, str]] = []

    def rotate() -> str:
        told.append(rotate_webhook_secret(principal=visit.principal, webhook_id=webhook_id))
        return visit.url("webhook", webhook_id)

    led = sent_once(visit, rotate)
    return show_secret(visit, *told[0]) if told else led


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def delete_webhook(visit: Visit, webhook_id: UUID) -> HttpResponse:
    """Ask first, then remove it with its log."""
    found = find_webhook(visit.principal.tenant_id, webhook_id)
    if visit.request.method == "GET":
        return render_page(visit.request, "govern/webhook_remove.html", {"webhook": found})
    must_be_proved(visit)
    remove_webhook(principal=visit.principal, webhook_id=webhook_id)
    messages.success(visit.request, _("Removed."))
    return HttpResponseRedirect(visit.url("webhooks"))


@require_POST
@in_tenant(*APPOINTING)
def replay_webhook(visit: Visit, webhook_id: UUID) -> HttpResponse:
    """One delivery by its button, or the days that the form names."""
    delivery = visit.request.POST.get("delivery")
    form = ReplayForm(visit.request.POST)
    if delivery is None and not form.is_valid():
        return webhook_page(visit, webhook_id, form, status=422)
    moments = form.moments() if delivery is None else {}

    def act() -> str:
        try:
            with transaction.atomic():
                queued = replay_deliveries(
                    principal=visit.principal,
                    webhook_id=webhook_id,
                    delivery_id=delivery,
                    **moments,
                )
        except WebhookDisabled:
            messages.error(visit.request, _("It is off. Let it go on first."))
        else:
            said = ngettext(
                "%(count)s event is told again.", "%(count)s events are told again.", queued
            )
            messages.success(visit.request, said % {"count": queued})
        return visit.url("webhook", webhook_id)

    return sent_once(visit, act)


def _back(visit: Visit, webhook_id: UUID, said: str) -> HttpResponse:
    messages.success(visit.request, said)
    return HttpResponseRedirect(visit.url("webhook", webhook_id))
