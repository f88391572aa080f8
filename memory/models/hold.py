"""Legal holds: what may not be destroyed, for which matter, who asked for its release, and what it refused."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class LegalHold(TenantModel):
    """A matter that keeps what it names. Rows are never removed.

    An empty list does not narrow. `has_selector` False: it names its items one by one.
    """

    id = models.UUIDField(primary_key=True)
    matter = models.TextField()
    reason = models.TextField()
    scope_text = models.TextField()
    subject_ids = ArrayField(models.TextField(), default=list)
    fact_types = ArrayField(models.TextField(), default=list)
    run_ids = ArrayField(models.TextField(), default=list)
    written_from = models.DateTimeField(null=True)
    written_until = models.DateTimeField(null=True)
    has_selector = models.BooleanField(default=False)
    covers_future = models.BooleanField(default=False)
    placed_by = models.TextField()
    placed_at = models.DateTimeField(db_default=Now())
    review_on = models.DateField()
    released_at = models.DateTimeField(null=True)
    released_because = models.TextField(null=True)
    taken_in_at = models.DateTimeField(null=True, db_default=Now())
    taking_in = models.TextField(default="facts")
    taken_in_after = models.TextField(default="")
    named_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "legal_hold"

    def __str__(self) -> str:
        return self.matter


class FactHold(TenantModel):
    """One fact that one hold keeps now."""

    hold_id = models.UUIDField()
    fact_id = models.TextField(primary_key=True)

    class Meta:
        db_table = "fact_hold"

    def __str__(self) -> str:
        return f"{self.fact_id} by {self.hold_id}"


class RecordHold(TenantModel):
    """One memory record that one hold keeps now."""

    hold_id = models.UUIDField()
    record_id = models.TextField(primary_key=True)

    class Meta:
        db_table = "record_hold"

    def __str__(self) -> str:
        return f"{self.record_id} by {self.hold_id}"


class HoldItem(TenantModel):
    """What a hold ever kept. `is_later`: written after it was placed."""

    hold_id = models.UUIDField()
    kind = models.TextField()
    item_id = models.TextField(primary_key=True)
    is_later = models.BooleanField()
    added_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "hold_item"

    def __str__(self) -> str:
        return f"{self.kind} {self.item_id} by {self.hold_id}"


class HoldRelease(TenantModel):
    """One request to release a hold, and what became of it."""

    id = models.UUIDField(primary_key=True)
    hold_id = models.UUIDField()
    reason = models.TextField()
    requested_by = models.TextField()
    requested_at = models.DateTimeField(db_default=Now())
    decision = models.TextField(null=True)
    decided_by = models.TextField(null=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "hold_release"

    def __str__(self) -> str:
        return f"{self.decision or 'open'} {self.id}"


class HoldRefusal(TenantModel):
    """An act that a hold refused."""

    id = models.UUIDField(primary_key=True)
    act = models.TextField()
    asked_by = models.TextField()
    asked_at = models.DateTimeField(db_default=Now())
    item_ids = ArrayField(models.TextField())
    log_entry_id = models.TextField()

    class Meta:
        db_table = "hold_refusal"

    def __str__(self) -> str:
        return f"{self.act} {self.id}"
