"""What ended and is not yet written down outside the database."""

from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class EndedItem(TenantModel):
    """One end of a record or fact, or one keyed mark that was set or taken away. Written by triggers; gone once it is in the
    ledger. `was_id`: what an undo brought back under this id.
    """

    id = models.UUIDField(primary_key=True)
    item = models.TextField()
    item_id = models.TextField()
    act = models.TextField()
    was_id = models.TextField(null=True)
    version = models.IntegerField(null=True)
    mark = models.TextField(null=True)
    digest = models.BinaryField(null=True)
    ended_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "ended_item"

    def __str__(self) -> str:
        return f"{self.act} {self.item} {self.item_id}"
