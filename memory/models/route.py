"""Named correction routes of a tenant, and the sources that policy values may come from."""

from django.db import models

from memory.models.base import TenantModel


class CorrectionRoute(TenantModel):
    """A named way to a correction: the tenant's own, a rewording of a built-in one, or a name that nobody configured yet."""

    name = models.TextField(primary_key=True)
    label = models.TextField()
    description = models.TextField(default="")
    audience = models.TextField(default="person")
    url_template = models.TextField(null=True)
    may_broaden = models.BooleanField(default=True)
    needs_evidence = models.BooleanField(default=False)
    is_configured = models.BooleanField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    updated_at = models.DateTimeField()
    updated_by = models.TextField()

    class Meta:
        db_table = "correction_route"

    def __str__(self) -> str:
        return self.name


class PolicySource(TenantModel):
    """Which pointers of policies are followed, and to where."""

    id = models.UUIDField(primary_key=True)
    match = models.TextField()
    fetch_url = models.TextField()
    pointer = models.TextField(default="")
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    created_by = models.TextField()
    updated_at = models.DateTimeField()
    updated_by = models.TextField()

    class Meta:
        db_table = "policy_source"

    def __str__(self) -> str:
        return self.match
