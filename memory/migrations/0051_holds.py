"""Legal holds as cases: scope, matches, releases, refusals."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0050_sweep"),
    ]

    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField(
                    model_name="legalhold",
                    name="covers_future",
                    field=models.BooleanField(default=False),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="fact_types",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="has_selector",
                    field=models.BooleanField(default=False),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="released_because",
                    field=models.TextField(null=True),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="run_ids",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="subject_ids",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="written_from",
                    field=models.DateTimeField(null=True),
                ),
                migrations.AddField(
                    model_name="legalhold",
                    name="written_until",
                    field=models.DateTimeField(null=True),
                ),
                migrations.CreateModel(
                    name="HoldItem",
                    fields=[
                        ("hold_id", models.UUIDField()),
                        ("kind", models.TextField()),
                        ("item_id", models.TextField(primary_key=True, serialize=False)),
                        ("is_later", models.BooleanField()),
                        (
                            "added_at",
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
                        "db_table": "hold_item",
                    },
                ),
                migrations.CreateModel(
                    name="HoldRefusal",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("act", models.TextField()),
                        ("asked_by", models.TextField()),
                        (
                            "asked_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        (
                            "item_ids",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
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
                        "db_table": "hold_refusal",
                    },
                ),
                migrations.CreateModel(
                    name="HoldRelease",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("hold_id", models.UUIDField()),
                        ("reason", models.TextField()),
                        ("requested_by", models.TextField()),
                        (
                            "requested_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("decision", models.TextField(null=True)),
                        ("decided_by", models.TextField(null=True)),
                        ("decided_at", models.DateTimeField(null=True)),
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
                        "db_table": "hold_release",
                    },
                ),
                migrations.CreateModel(
                    name="RecordHold",
                    fields=[
                        ("hold_id", models.UUIDField()),
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
                        "db_table": "record_hold",
                    },
                ),
            ],
        )
    ]
