"""Memory records, their correction routes and policy sources."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0010_search")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="CorrectionRoute",
                    fields=[
                        ("name", models.TextField(primary_key=True, serialize=False)),
                        ("label", models.TextField()),
                        ("description", models.TextField(default="")),
                        ("audience", models.TextField(default="person")),
                        ("url_template", models.TextField(null=True)),
                        ("may_broaden", models.BooleanField(default=True)),
                        ("needs_evidence", models.BooleanField(default=False)),
                        ("is_configured", models.BooleanField()),
                        ("created_at", models.DateTimeField()),
                        ("created_by", models.TextField()),
                        ("updated_at", models.DateTimeField()),
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
                        "db_table": "correction_route",
                    },
                ),
                migrations.CreateModel(
                    name="ForgottenFingerprint",
                    fields=[
                        ("digest", models.BinaryField(primary_key=True, serialize=False)),
                        ("kind", models.TextField()),
                        ("record_id", models.TextField()),
                        ("receipt_number", models.TextField(null=True)),
                        ("made_at", models.DateTimeField()),
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
                        "db_table": "forgotten_fingerprint",
                    },
                ),
                migrations.CreateModel(
                    name="MemoryRecord",
                    fields=[
                        ("id", models.TextField(primary_key=True, serialize=False)),
                        ("subject_type", models.TextField()),
                        ("subject_id", models.TextField()),
                        ("key", models.TextField(db_collation="C")),
                        ("authority", models.TextField()),
                        ("source_type", models.TextField()),
                        (
                            "source_rank",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "CASE source_type WHEN 'user_stated' THEN 1 WHEN 'user_correction' THEN 1 "
                                    "WHEN 'system_record' THEN 2 ELSE 3 END",
                                    (),
                                ),
                                output_field=models.SmallIntegerField(),
                            ),
                        ),
                        ("evidence_kind", models.TextField()),
                        ("evidence_ref", models.TextField()),
                        ("observations", models.IntegerField()),
                        ("captured_at", models.DateTimeField()),
                        ("captured_by", models.TextField()),
                        ("source_of_truth", models.TextField(null=True)),
                        ("level", models.TextField()),
                        (
                            "level_rank",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "CASE level WHEN 'instance' THEN 1 WHEN 'task' THEN 2 WHEN 'session' THEN 3 "
                                    "WHEN 'project' THEN 4 WHEN 'client' THEN 5 WHEN 'user' THEN 6 ELSE 7 END",
                                    (),
                                ),
                                output_field=models.SmallIntegerField(),
                            ),
                        ),
                        ("bindings_text", models.TextField()),
                        (
                            "bindings",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "bindings_text::jsonb", ()
                                ),
                                output_field=models.JSONField(),
                            ),
                        ),
                        (
                            "binding_count",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.expressions.RawSQL(
                                    "jsonb_array_length(jsonb_path_query_array(bindings_text::jsonb, '$.keyvalue()'))",
                                    (),
                                ),
                                output_field=models.SmallIntegerField(),
                            ),
                        ),
                        ("bindings_hash", models.BinaryField()),
                        ("valid_from", models.DateField(null=True)),
                        ("valid_until", models.DateField(null=True)),
                        (
                            "revalidate_on",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        ("route", models.TextField()),
                        ("broadened", models.BooleanField(default=False)),
                        ("status", models.TextField(default="active")),
                        ("sensitivity", models.TextField()),
                        ("retain_value", models.BooleanField(default=False)),
                        ("deleted_at", models.DateTimeField(null=True)),
                        ("deleted_reason", models.TextField(null=True)),
                        ("trust", models.TextField()),
                        ("review", models.TextField(null=True)),
                        ("review_reason", models.TextField(null=True)),
                        ("confirmed_at", models.DateTimeField(null=True)),
                        ("disputed_at", models.DateTimeField(null=True)),
                        ("hold_count", models.IntegerField(default=0)),
                        ("written_by", models.TextField()),
                        ("written_by_role", models.TextField()),
                        ("recorded_at", models.DateTimeField()),
                        ("changed_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("version_from", models.DateTimeField()),
                        ("row_version", models.IntegerField(default=1)),
                        ("request_digest", models.BinaryField(null=True)),
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
                        "db_table": "memory_record",
                    },
                ),
                migrations.CreateModel(
                    name="PendingAct",
                    fields=[
                        ("id", models.TextField(primary_key=True, serialize=False)),
                        ("act", models.TextField()),
                        ("record_id", models.TextField(null=True)),
                        ("subject_type", models.TextField(null=True)),
                        ("subject_id", models.TextField(null=True)),
                        ("key", models.TextField(null=True)),
                        ("body_text", models.TextField(null=True)),
                        ("reason_code", models.TextField()),
                        ("asked_by", models.TextField()),
                        ("asked_by_role", models.TextField()),
                        ("asked_at", models.DateTimeField()),
                        ("decided_at", models.DateTimeField(null=True)),
                        ("decided_by", models.TextField(null=True)),
                        ("decision", models.TextField(null=True)),
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
                        "db_table": "pending_act",
                    },
                ),
                migrations.CreateModel(
                    name="PolicySource",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("match", models.TextField()),
                        ("fetch_url", models.TextField()),
                        ("pointer", models.TextField(default="")),
                        ("is_enabled", models.BooleanField(default=True)),
                        ("created_at", models.DateTimeField()),
                        ("created_by", models.TextField()),
                        ("updated_at", models.DateTimeField()),
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
                        "db_table": "policy_source",
                    },
                ),
                migrations.CreateModel(
                    name="Receipt",
                    fields=[
                        ("number", models.TextField(primary_key=True, serialize=False)),
                        ("act_id", models.UUIDField()),
                        ("route", models.TextField()),
                        ("record_id", models.TextField()),
                        (
                            "before_ids",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "after_ids",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        ("before_digest", models.BinaryField(null=True)),
                        ("after_digest", models.BinaryField(null=True)),
                        ("before_scope_text", models.TextField()),
                        ("scope_text", models.TextField()),
                        ("actor", models.TextField()),
                        ("actor_role", models.TextField()),
                        ("reason", models.TextField(null=True)),
                        ("statement", models.TextField(null=True)),
                        ("evidence_ref", models.TextField()),
                        ("log_entry_id", models.TextField()),
                        ("log_entry_hash", models.BinaryField()),
                        ("made_at", models.DateTimeField()),
                        ("undo_until", models.DateTimeField(null=True)),
                        ("undone_at", models.DateTimeField(null=True)),
                        ("undone_by", models.TextField(null=True)),
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
                        "db_table": "receipt",
                    },
                ),
                migrations.CreateModel(
                    name="RecordAct",
                    fields=[
                        ("act_id", models.UUIDField(primary_key=True, serialize=False)),
                        ("record_id", models.TextField()),
                        ("act", models.TextField()),
                        ("is_main", models.BooleanField()),
                        ("from_record_id", models.TextField(null=True)),
                        ("from_status", models.TextField(null=True)),
                        ("to_status", models.TextField()),
                        ("actor", models.TextField()),
                        ("actor_role", models.TextField()),
                        ("acted_at", models.DateTimeField()),
                        ("reason_code", models.TextField()),
                        ("reason", models.TextField(null=True)),
                        ("scope_text", models.TextField()),
                        ("receipt_number", models.TextField(null=True)),
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
                        "db_table": "record_act",
                    },
                ),
                migrations.CreateModel(
                    name="RecordDocument",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        (
                            "lexemes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(db_collation="C"), size=None
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
                    options={"db_table": "record_document"},
                ),
                migrations.CreateModel(
                    name="RecordPosting",
                    fields=[
                        ("lexeme", models.TextField(db_collation="C")),
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
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
                    options={"db_table": "record_posting"},
                ),
                migrations.CreateModel(
                    name="RecordLineage",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        ("parent_id", models.TextField()),
                        ("position", models.SmallIntegerField()),
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
                        "db_table": "record_lineage",
                    },
                ),
                migrations.CreateModel(
                    name="RecordListener",
                    fields=[
                        ("event_type", models.TextField(db_collation="C")),
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
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
                        "db_table": "record_listener",
                    },
                ),
                migrations.CreateModel(
                    name="RecordObservation",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        ("run_key", models.TextField()),
                        ("observed_at", models.DateTimeField()),
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
                        "db_table": "record_observation",
                    },
                ),
                migrations.CreateModel(
                    name="RecordPast",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        ("row_version", models.IntegerField()),
                        ("from_at", models.DateTimeField()),
                        ("until_at", models.DateTimeField()),
                        ("level", models.TextField()),
                        ("bindings_text", models.TextField()),
                        ("valid_from", models.DateField(null=True)),
                        ("valid_until", models.DateField(null=True)),
                        ("observations", models.IntegerField()),
                        ("confirmed_at", models.DateTimeField(null=True)),
                        ("disputed_at", models.DateTimeField(null=True)),
                        ("trust", models.TextField()),
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
                        "db_table": "record_past",
                    },
                ),
                migrations.CreateModel(
                    name="RecordSupersession",
                    fields=[
                        ("superseded_id", models.TextField(primary_key=True, serialize=False)),
                        ("successor_id", models.TextField()),
                        ("superseded_at", models.DateTimeField()),
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
                        "db_table": "record_supersession",
                    },
                ),
                migrations.CreateModel(
                    name="RecordUsage",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        ("use_count", models.BigIntegerField(default=0)),
                        ("last_used_at", models.DateTimeField(null=True)),
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
                        "db_table": "record_usage",
                    },
                ),
                migrations.CreateModel(
                    name="RecordValue",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        ("value_text", models.TextField()),
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
                        "db_table": "record_value",
                    },
                ),
                migrations.CreateModel(
                    name="SealedCopy",
                    fields=[
                        ("record_id", models.TextField(primary_key=True, serialize=False)),
                        ("purpose", models.TextField()),
                        ("receipt_number", models.TextField(null=True)),
                        ("nonce", models.BinaryField()),
                        ("ciphertext", models.BinaryField()),
                        ("sealed_at", models.DateTimeField()),
                        ("destroy_after", models.DateTimeField(null=True)),
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
                        "db_table": "sealed_copy",
                    },
                ),
                migrations.CreateModel(
                    name="UsedWord",
                    fields=[
                        ("log_entry_id", models.TextField(primary_key=True, serialize=False)),
                        ("act_id", models.UUIDField()),
                        ("used_at", models.DateTimeField()),
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
                        "db_table": "used_word",
                    },
                ),
            ],
        )
    ]
