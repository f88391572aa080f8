"""Webhooks."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0100_work_queue")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="Webhook",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("name", models.TextField()),
                        ("url", models.TextField()),
                        (
                            "events",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        ("secret", models.BinaryField()),
                        ("previous_secret", models.BinaryField(null=True)),
                        ("previous_until", models.DateTimeField(null=True)),
                        ("disabled_because", models.TextField(null=True)),
                        ("failing_since", models.DateTimeField(null=True)),
                        ("failures", models.IntegerField(default=0)),
                        ("rests_until", models.DateTimeField(null=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        (
                            "changed_at",
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
                        "db_table": "webhook",
                    },
                ),
                migrations.CreateModel(
                    name="WebhookAttempt",
                    fields=[
                        ("delivery_id", models.UUIDField(primary_key=True, serialize=False)),
                        ("number", models.IntegerField()),
                        (
                            "at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("status", models.SmallIntegerField(null=True)),
                        ("error", models.TextField(null=True)),
                        ("duration_ms", models.IntegerField()),
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
                        "db_table": "webhook_attempt",
                    },
                ),
                migrations.CreateModel(
                    name="WebhookDelivery",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("webhook_id", models.UUIDField()),
                        ("event_id", models.TextField()),
                        ("status", models.TextField(default="pending")),
                        (
                            "queued_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("tries", models.IntegerField(default=0)),
                        ("attempts", models.IntegerField(default=0)),
                        (
                            "next_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("lease_until", models.DateTimeField(null=True)),
                        ("ended_at", models.DateTimeField(null=True)),
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
                        "db_table": "webhook_delivery",
                    },
                ),
                migrations.CreateModel(
                    name="WebhookEvent",
                    fields=[
                        ("id", models.TextField(primary_key=True, serialize=False)),
                        ("type", models.TextField()),
                        ("occurred_at", models.DateTimeField()),
                        ("body_text", models.TextField()),
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
                        "db_table": "webhook_event",
                    },
                ),
            ],
        )
    ]
