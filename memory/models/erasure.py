"""Erasures: the ledger of what was erased, without whom it was about once it is done."""

from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class Erasure(TenantModel):
    """One erasure. `selector_id` only while it runs; `counts_text`: canonical JSON, store → how many. Rows are never removed.

    `reaches_before`: it takes what was there until then, and no writer waits for it.
    """

    id = models.UUIDField(primary_key=True)
    selector_kind = models.TextField()
    selector_id = models.TextField(null=True)
    selector_in_log = models.TextField(null=True)
    selector_digest = models.BinaryField(null=True)
    key_id = models.TextField(null=True)
    status = models.TextField(default="pending")
    phase = models.TextField(default="seed")
    store = models.TextField(default="facts")
    after_run = models.TextField(null=True)
    after_sequence = models.BigIntegerField(null=True)
    requested_by = models.TextField()
    counts_text = models.TextField(default="{}")
    attempts = models.IntegerField(default=0)
    last_error = models.TextField(null=True)
    is_forced = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    replayed_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now())
    runner = models.UUIDField(null=True)
    reaches_before = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "erasure"

    def __str__(self) -> str:
        return f"{self.status} {self.id}"
