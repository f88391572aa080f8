"""Facts, their revisions and content, and the holds that keep them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_log")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="FactType",
                    fields=[
                        ("type", models.TextField(primary_key=True, serialize=False)),
                        ("keyword", models.BooleanField(default=True)),
                        ("semantic", models.BooleanField(default=True)),
                        ("embedding_model", models.TextField(null=True)),
                        ("content_schema", models.TextField(null=True)),
                        ("keep_days", models.IntegerField(null=True)),
                        ("delete_after_days", models.IntegerField(null=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("updated_by", models.TextField()),
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
                        "db_table": "fact_type",
                    },
                ),
                migrations.CreateModel(
                    name="Fact",
                    fields=[
                        ("id", models.TextField(primary_key=True, serialize=False)),
                        ("type", models.TextField()),
                        ("scope_text", models.TextField()),
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
                            "session_id",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "(scope_text::jsonb) ->> %s", ("sessionId",)
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
                        ("current_version", models.IntegerField()),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("keep_ends_at", models.DateTimeField(null=True)),
                        ("keep_reason", models.TextField(null=True)),
                        ("unverified_until", models.DateTimeField(null=True)),
                        ("review", models.TextField(null=True)),
                        ("deleted_at", models.DateTimeField(null=True)),
                        ("hold_count", models.IntegerField(default=0)),
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
                        "db_table": "fact",
                    },
                ),
                migrations.CreateModel(
                    name="FactRevision",
                    fields=[
                        ("fact_id", models.TextField()),
                        ("version", models.IntegerField()),
                        ("revision_id", models.TextField(primary_key=True, serialize=False)),
                        ("supersedes", models.TextField(null=True)),
                        ("recorded_at", models.DateTimeField()),
                        ("content_hash", models.BinaryField(null=True)),
                        ("size_bytes", models.BigIntegerField(null=True)),
                        ("content_ref", models.TextField(null=True)),
                        ("retention_text", models.TextField(null=True)),
                        ("source_text", models.TextField(null=True)),
                        ("subjects_text", models.TextField(null=True)),
                        (
                            "cause_ids",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        ("valid_from", models.DateTimeField(null=True)),
                        ("valid_until", models.DateTimeField(null=True)),
                        ("observed_at", models.DateTimeField(null=True)),
                        ("trust", models.TextField()),
                        ("verified_by", models.TextField(null=True)),
                        ("verified_at", models.DateTimeField(null=True)),
                        ("attributed_kind", models.TextField()),
                        ("attributed_id", models.TextField()),
                        ("generated_run_id", models.TextField(null=True)),
                        ("written_by", models.TextField()),
                        ("written_by_role", models.TextField()),
                        ("invalidated_at", models.DateTimeField(null=True)),
                        ("invalidated_by", models.TextField(null=True)),
                        ("invalidation_reason", models.TextField(null=True)),
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
                        "db_table": "fact_revision",
                    },
                ),
                migrations.CreateModel(
                    name="FactContent",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("version", models.IntegerField()),
                        ("content_text", models.TextField()),
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
                        "db_table": "fact_content",
                    },
                ),
                migrations.CreateModel(
                    name="FactFreshness",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("strategy", models.TextField()),
                        ("handler", models.TextField(null=True)),
                        ("priority", models.IntegerField(default=0)),
                        ("ttl_seconds", models.BigIntegerField(null=True)),
                        ("last_verified_at", models.DateTimeField(null=True)),
                        ("etag", models.TextField(null=True)),
                        ("source_version", models.TextField(null=True)),
                        ("last_attempt_at", models.DateTimeField(null=True)),
                        ("last_failure", models.TextField(null=True)),
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
                        "db_table": "fact_freshness",
                    },
                ),
                migrations.CreateModel(
                    name="FactSubject",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("version", models.IntegerField()),
                        ("position", models.SmallIntegerField()),
                        ("kind", models.TextField()),
                        ("subject_id", models.TextField()),
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
                        "db_table": "fact_subject",
                    },
                ),
                migrations.CreateModel(
                    name="FactCause",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("version", models.IntegerField()),
                        ("position", models.SmallIntegerField()),
                        ("log_entry_id", models.TextField()),
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
                        "db_table": "fact_cause",
                    },
                ),
                migrations.CreateModel(
                    name="LegalHold",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("matter", models.TextField()),
                        ("reason", models.TextField()),
                        ("scope_text", models.TextField()),
                        ("placed_by", models.TextField()),
                        (
                            "placed_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("review_on", models.DateField()),
                        ("released_at", models.DateTimeField(null=True)),
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
                        "db_table": "legal_hold",
                    },
                ),
                migrations.CreateModel(
                    name="FactHold",
                    fields=[
                        ("hold_id", models.UUIDField()),
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
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
                        "db_table": "fact_hold",
                    },
                ),
            ],
        )
    ]
