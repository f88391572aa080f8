"""Webhooks: who hears of what, what there is to tell, and how telling went."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class Webhook(TenantModel):
    """An address that hears of events. `events` empty: of all. Secrets are sealed under a key outside the database."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    url = models.TextField()
    events = ArrayField(models.TextField(), default=list)
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    disabled_because = models.TextField(null=True)
    failing_since = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0)
    rests_until = models.DateTimeField(null=True)
    is_slow = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "webhook"

    def __str__(self) -> str:
        return self.name


class WebhookEvent(TenantModel):
    """What there is to tell: ids and codes, written with the act itself."""

    id = models.TextField(primary_key=True)
    type = models.TextField()
    occurred_at = models.DateTimeField()
    body_text = models.TextField()

    class Meta:
        db_table = "webhook_event"

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class WebhookDelivery(TenantModel):
    """One event for one webhook: pending until it was taken, or given up."""

    id = models.UUIDField(primary_key=True)
    webhook_id = models.UUIDField()
    event_id = models.TextField()
    status = models.TextField(default="pending")
    queued_at = models.DateTimeField(db_default=Now())
    tries = models.IntegerField(default=0)
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "webhook_delivery"

    def __str__(self) -> str:
        return f"{self.status} {self.id}"


class WebhookAttempt(TenantModel):
    """What came of one attempt: a status, or the kind of failure; and how long it took."""

    delivery_id = models.UUIDField(primary_key=True)
    number = models.IntegerField()
    at = models.DateTimeField(db_default=Now())
    status = models.SmallIntegerField(null=True)
    error = models.TextField(null=True)
    duration_ms = models.IntegerField()

    class Meta:
        db_table = "webhook_attempt"

    def __str__(self) -> str:
        return f"{self.number} of {self.delivery_id}"
