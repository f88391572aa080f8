"""Routes of webhooks."""

from django.urls import path

from memory.api.views import webhooks

_ONE = "memory/webhooks/<id:webhook_id>"

urlpatterns = [
    path("memory/webhooks", webhooks.Webhooks.as_view(), name="webhooks"),
    path(f"{_ONE}/rotate-secret", webhooks.WebhookSecret.as_view(), name="webhook-secret"),
    path(f"{_ONE}/test", webhooks.WebhookTest.as_view(), name="webhook-test"),
    path(f"{_ONE}/deliveries", webhooks.WebhookDeliveries.as_view(), name="webhook-deliveries"),
    path(f"{_ONE}/replay", webhooks.WebhookReplay.as_view(), name="webhook-replay"),
    path(_ONE, webhooks.OneWebhook.as_view(), name="webhook"),
]
