"""Legal holds: what may not be destroyed, and for which matter."""

from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class LegalHold(TenantModel):
    """A matter that keeps what it names. Rows are never removed."""

    id = models.UUIDField(primary_key=True)
    matter = models.TextField()
    reason = models.TextField()
    scope_text = models.TextField()
    placed_by = models.TextField()
    placed_at = models.DateTimeField(db_default=Now())
    review_on = models.DateField()
    released_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "legal_hold"

    def __str__(self) -> str:
        return self.matter


class FactHold(TenantModel):
    """One fact that one hold keeps."""

    hold_id = models.UUIDField()
    fact_id = models.TextField(primary_key=True)

    class Meta:
        db_table = "fact_hold"

    def __str__(self) -> str:
        return f"{self.fact_id} by {self.hold_id}"
