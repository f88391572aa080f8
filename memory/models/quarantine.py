"""Quarantines: what one key or one run wrote, out of use until somebody lifts it or rolls it back."""

from django.db import models

from memory.models.base import TenantModel


class Quarantine(TenantModel):
    """`selector_id`: a key's prefix, or a run's id."""

    id = models.UUIDField(primary_key=True)
    selector = models.TextField()
    selector_id = models.TextField()
    since = models.DateTimeField()
    reason = models.TextField()
    status = models.TextField(default="active")
    placed_by = models.TextField()
    placed_at = models.DateTimeField()
    ended_by = models.TextField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "quarantine"

    def __str__(self) -> str:
        return f"{self.selector} {self.selector_id}"


class QuarantineItem(TenantModel):
    """One record or fact that a quarantine took out of use, and what became of it."""

    quarantine_id = models.UUIDField(primary_key=True)
    kind = models.TextField()
    item_id = models.TextField()
    outcome = models.TextField(null=True)
    restored_id = models.TextField(null=True)

    class Meta:
        db_table = "quarantine_item"

    def __str__(self) -> str:
        return f"{self.kind} {self.item_id}"
