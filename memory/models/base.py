"""What every tenant model shares.

The primary key in the database is (tenant_id, id) or the table's natural key led by tenant_id; the models name the part that
is unique inside a tenant as Django's primary key, which is right under row-level security: a query sees one tenant only.
Tables are made by the SQL migrations; `tests/db/test_models_match_tables.py` keeps the two equal.
"""

from django.db import models


class TenantModel(models.Model):
    """A row of one tenant. The link to the tenant is enforced in SQL."""

    tenant = models.ForeignKey(
        "memory.Tenant", models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )

    class Meta:
        abstract = True
