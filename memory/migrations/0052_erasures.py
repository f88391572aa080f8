"""Erasures and the ledger of what they were about."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0051_holds"),
    ]

    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="Erasure",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("selector_kind", models.TextField()),
                        ("selector_id", models.TextField(null=True)),
                        ("selector_digest", models.BinaryField(null=True)),
                        ("key_id", models.TextField(null=True)),
                        ("status", models.TextField(default="pending")),
                        ("phase", models.TextField(default="seed")),
                        ("store", models.TextField(default="facts")),
                        ("after_run", models.TextField(null=True)),
                        ("after_sequence", models.BigIntegerField(null=True)),
                        ("requested_by", models.TextField()),
                        ("counts_text", models.TextField(default="{}")),
                        ("attempts", models.IntegerField(default=0)),
                        ("last_error", models.TextField(null=True)),
                        ("is_forced", models.BooleanField(default=False)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("started_at", models.DateTimeField(null=True)),
                        ("completed_at", models.DateTimeField(null=True)),
                        ("replayed_at", models.DateTimeField(null=True)),
                        (
                            "next_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("runner", models.UUIDField(null=True)),
                        ("lease_until", models.DateTimeField(null=True)),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.tenant",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "erasure",
                    },
                ),
            ],
        )
    ]
