"""Verifications that the worker does."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0060_background_work")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="VerificationJob",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("run_id", models.TextField(null=True)),
                        ("from_sequence", models.BigIntegerField(null=True)),
                        ("to_sequence", models.BigIntegerField(null=True)),
                        ("is_incremental", models.BooleanField(default=False)),
                        ("status", models.TextField(default="queued")),
                        ("since_size", models.BigIntegerField(null=True)),
                        ("checkpoint_size", models.BigIntegerField(null=True)),
                        ("runs_done", models.IntegerField(default=0)),
                        ("runs_total", models.IntegerField(default=0)),
                        ("entries_done", models.BigIntegerField(default=0)),
                        ("entries_total", models.BigIntegerField(default=0)),
                        ("state", models.TextField(null=True)),
                        ("found_text", models.TextField(null=True)),
                        ("asked_by", models.TextField()),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("started_at", models.DateTimeField(null=True)),
                        ("finished_at", models.DateTimeField(null=True)),
                        ("cancel_asked_at", models.DateTimeField(null=True)),
                        ("runner", models.UUIDField(null=True)),
                        ("lease_until", models.DateTimeField(null=True)),
                        ("attempts", models.IntegerField(default=0)),
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
                        "db_table": "verification_job",
                    },
                ),
            ],
        )
    ]
