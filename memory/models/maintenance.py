"""Maintenance of disk pages, of the whole installation."""

from django.db import models
from django.db.models.functions import Now


class PageMaintenance(models.Model):
    """One clearing of disk pages, or the one that is due; not a tenant's."""

    id = models.UUIDField(primary_key=True)
    status = models.TextField(default="due")
    asked_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    rewritten_count = models.IntegerField(default=0)
    vacuumed_count = models.IntegerField(default=0)
    failure = models.TextField(null=True)

    class Meta:
        db_table = "page_maintenance"

    def __str__(self) -> str:
        return f"{self.status} {self.id}"
