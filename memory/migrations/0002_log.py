"""The run log."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_walls")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="RunHead",
                    fields=[
                        ("run_id", models.TextField(primary_key=True, serialize=False)),
                        ("next_sequence", models.BigIntegerField()),
                        ("head_hash", models.BinaryField()),
                        ("prev_hash", models.BinaryField()),
                        ("entry_count", models.BigIntegerField()),
                        ("first_at", models.DateTimeField()),
                        ("last_at", models.DateTimeField()),
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
                        "db_table": "run_head",
                    },
                ),
                migrations.CreateModel(
                    name="LogEntry",
                    fields=[
                        ("run_id", models.TextField()),
                        ("sequence", models.BigIntegerField()),
                        ("id", models.TextField(primary_key=True, serialize=False)),
                        ("kind", models.TextField()),
                        ("scope_text", models.TextField()),
                        ("actor", models.TextField(null=True)),
                        ("recorded_at", models.DateTimeField()),
                        ("payload_text", models.TextField(null=True)),
                        ("payload_salt", models.TextField(null=True)),
                        ("content_hash", models.BinaryField(null=True)),
                        ("prev_hash", models.BinaryField()),
                        ("entry_hash", models.BinaryField()),
                        ("hash_version", models.SmallIntegerField(default=1)),
                        ("caused_by", models.TextField(null=True)),
                        ("payload_erased_at", models.DateTimeField(null=True)),
                        ("writer", models.TextField()),
                        ("writer_role", models.TextField()),
                        (
                            "user_id",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "(scope_text::jsonb) ->> %s", ("userId",)
                                ),
                                output_field=models.TextField(null=True),
                            ),
                        ),
                        (
                            "org_id",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "(scope_text::jsonb) ->> %s", ("orgId",)
                                ),
                                output_field=models.TextField(null=True),
                            ),
                        ),
                        (
                            "project_id",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "(scope_text::jsonb) ->> %s", ("projectId",)
                                ),
                                output_field=models.TextField(null=True),
                            ),
                        ),
                        (
                            "thread_id",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "(scope_text::jsonb) ->> %s", ("threadId",)
                                ),
                                output_field=models.TextField(null=True),
                            ),
                        ),
                        (
                            "participant_id",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "(scope_text::jsonb) ->> %s", ("participantId",)
                                ),
                                output_field=models.TextField(null=True),
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
                        "db_table": "log_entry",
                    },
                ),
            ],
        )
    ]
