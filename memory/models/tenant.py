"""Tenants, their members, their API keys, and the answers kept for retried requests."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel


class Tenant(models.Model):
    """The outer wall. `slug` is the wire `tenantId`."""

    id = models.UUIDField(primary_key=True)
    slug = models.TextField(unique=True)
    name = models.TextField()
    time_zone = models.TextField(default="UTC")
    search_language = models.TextField(default="english")
    hash_version = models.SmallIntegerField(default=1)
    log_ids = models.TextField(default="plain")
    undo_hours = models.IntegerField(default=24)
    settings: Any = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "tenant"

    def __str__(self) -> str:
        return self.slug


class Member(TenantModel):
    """A signed-in user's place in one tenant. `subject_id` is the person that the user is there."""

    class Role(models.TextChoices):
        OWNER = "owner"
        ADMIN = "admin"
        AUDITOR = "auditor"
        PERSON = "person"

    id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.DO_NOTHING, db_constraint=False, db_index=False
    )
    role = models.TextField(choices=Role.choices)
    role_granted_at = models.DateTimeField(db_default=Now())
    role_granted_by = models.TextField(null=True)
    subject_id = models.TextField(null=True)
    settings: Any = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    left_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "member"

    def __str__(self) -> str:
        return f"{self.role} {self.id}"


class ApiKey(TenantModel):
    """A key of an agent, an app, an admin's script or an auditor. The token itself is never stored."""

    class Role(models.TextChoices):
        AGENT = "agent"
        APP = "app"
        ADMIN = "admin"
        AUDITOR = "auditor"

    id = models.UUIDField(primary_key=True)
    prefix = models.TextField(unique=True)
    digest = models.BinaryField()
    pepper_version = models.SmallIntegerField()
    name = models.TextField()
    role = models.TextField(choices=Role.choices)
    all_containers = models.BooleanField(default=False)
    projects = ArrayField(models.TextField(), default=list)
    orgs = ArrayField(models.TextField(), default=list)
    users = ArrayField(models.TextField(), default=list)
    participants = ArrayField(models.TextField(), default=list)
    threads = ArrayField(models.TextField(), default=list)
    on_behalf_of = ArrayField(models.TextField(), default=list)
    abilities = ArrayField(models.TextField())
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.TextField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    quota_writes = models.BigIntegerField(null=True)
    quota_bytes = models.BigIntegerField(null=True)
    quota_subjects = models.IntegerField(null=True)
    quota_window_seconds = models.IntegerField(default=3600)

    class Meta:
        db_table = "api_key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


class IdempotencyKey(TenantModel):
    """The first answer to a request that carried an Idempotency-Key, for 24 hours."""

    id = models.UUIDField(primary_key=True)
    principal = models.TextField()
    key = models.TextField()
    request_digest = models.BinaryField()
    status = models.SmallIntegerField()
    answer = models.TextField(null=True)
    item_ref = models.TextField(null=True)
    scopes_text = models.TextField(null=True)
    withheld_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "idempotency_key"

    def __str__(self) -> str:
        return self.key
