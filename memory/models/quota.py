"""How much a key wrote in the window under way, and about whom, as keyed digests."""

from django.db import models

from memory.models.base import TenantModel


class QuotaUse(TenantModel):
    key_prefix = models.TextField(primary_key=True)
    window_start = models.DateTimeField()
    writes = models.BigIntegerField()
    bytes = models.BigIntegerField()

    class Meta:
        db_table = "quota_use"

    def __str__(self) -> str:
        return self.key_prefix


class QuotaSubject(TenantModel):
    key_prefix = models.TextField(primary_key=True)
    digest = models.BinaryField()
    window_start = models.DateTimeField()

    class Meta:
        db_table = "quota_subject"

    def __str__(self) -> str:
        return self.key_prefix
