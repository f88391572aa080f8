"""What the installation itself keeps, across tenants: when its workers were last heard of."""

from django.db import models


class WorkerHeartbeat(models.Model):
    """One row a worker process kind; not a tenant's."""

    name = models.TextField(primary_key=True)
    beat_at = models.DateTimeField()

    class Meta:
        db_table = "worker_heartbeat"

    def __str__(self) -> str:
        return self.name
