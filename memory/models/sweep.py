"""Sweeps of what is due, and what stays as evidence of what was destroyed."""

from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class Sweep(TenantModel):
    """One walk over what is due. `counts_text` (rule → facts), `types_text` (type → facts): canonical JSON.

    A dry run destroys nothing.
    """

    id = models.UUIDField(primary_key=True)
    is_dry_run = models.BooleanField()
    status = models.TextField()
    started_by = models.TextField()
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    stopped_because = models.TextField(null=True)
    batches = models.IntegerField(default=0)
    due_count = models.BigIntegerField(default=0)
    destroyed_count = models.BigIntegerField(default=0)
    held_count = models.BigIntegerField(default=0)
    erasing_count = models.BigIntegerField(default=0)
    counts_text = models.TextField(default="{}")
    types_text = models.TextField(default="{}")
    branch = models.TextField(default="expired")
    after_at = models.DateTimeField(null=True)
    after_id = models.TextField(null=True)
    runner = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "sweep"

    def __str__(self) -> str:
        return f"{self.status} {self.id}"


class SweepClock(TenantModel):
    """The latest moment that a sweep of the tenant has seen."""

    tenant = models.OneToOneField(
        "memory.Tenant",
        models.DO_NOTHING,
        db_constraint=False,
        primary_key=True,
        related_name="+",
    )
    seen_at = models.DateTimeField()

    class Meta:
        db_table = "sweep_clock"

    def __str__(self) -> str:
        return self.seen_at.isoformat()


class DestroyedFact(TenantModel):
    """Evidence of one destroyed fact: no content, no subject. After an erasure the id is a keyed hash."""

    cause = models.TextField()
    cause_id = models.UUIDField()
    fact_id = models.TextField(primary_key=True)
    type = models.TextField()
    rule = models.TextField()
    first_written_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    revision_count = models.IntegerField()
    content_digest = models.BinaryField(null=True)
    destroyed_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "destroyed_fact"

    def __str__(self) -> str:
        return f"{self.fact_id} by {self.cause} {self.cause_id}"
