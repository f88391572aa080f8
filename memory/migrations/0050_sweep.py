"""Sweeps and the evidence of what they destroyed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0040_seals"),
    ]

    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="SweepClock",
                    fields=[
                        (
                            "tenant",
                            models.OneToOneField(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                primary_key=True,
                                related_name="+",
                                serialize=False,
                                to="memory.tenant",
                            ),
                        ),
                        ("seen_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "sweep_clock",
                    },
                ),
                migrations.CreateModel(
                    name="DestroyedFact",
                    fields=[
                        ("cause", models.TextField()),
                        ("cause_id", models.UUIDField()),
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("type", models.TextField()),
                        ("rule", models.TextField()),
                        ("first_written_at", models.DateTimeField()),
                        ("due_at", models.DateTimeField(null=True)),
                        ("revision_count", models.IntegerField()),
                        ("content_digest", models.BinaryField(null=True)),
                        (
                            "destroyed_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
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
                        "db_table": "destroyed_fact",
                    },
                ),
                migrations.CreateModel(
                    name="Sweep",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("is_dry_run", models.BooleanField()),
                        ("status", models.TextField()),
                        ("started_by", models.TextField()),
                        (
                            "started_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("finished_at", models.DateTimeField(null=True)),
                        ("stopped_because", models.TextField(null=True)),
                        ("batches", models.IntegerField(default=0)),
                        ("due_count", models.BigIntegerField(default=0)),
                        ("destroyed_count", models.BigIntegerField(default=0)),
                        ("held_count", models.BigIntegerField(default=0)),
                        ("counts_text", models.TextField(default="{}")),
                        ("branch", models.TextField(default="expired")),
                        ("after_at", models.DateTimeField(null=True)),
                        ("after_id", models.TextField(null=True)),
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
                        "db_table": "sweep",
                    },
                ),
            ],
        )
    ]
