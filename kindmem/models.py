"""What the installation itself keeps, across tenants: when its workers were last heard of, and which keys it has."""

from django.db import models


class WorkerHeartbeat(models.Model):
    """One row a worker process kind; not a tenant's."""

    name = models.TextField(primary_key=True)
    beat_at = models.DateTimeField()

    class Meta:
        db_table = "worker_heartbeat"

    def __str__(self) -> str:
        return self.name


class InstallationKeys(models.Model):
    """The one row that tells this database's keys from others (memory/installation_keys.py); not a tenant's."""

    is_only = models.BooleanField(primary_key=True, default=True)
    digest = models.BinaryField()

    class Meta:
        db_table = "installation_keys"

    def __str__(self) -> str:
        return "the keys of this installation"
