"""Seals, checkpoints and anchors of the run log."""

import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


def tenant() -> models.ForeignKey:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=models.DO_NOTHING,
        related_name="+",
        to="memory.tenant",
    )


def now() -> django.db.models.functions.datetime.Now:
    return django.db.models.functions.datetime.Now()


def leaf_part(sql: models.expressions.RawSQL, field: models.Field) -> models.GeneratedField:
    return models.GeneratedField(db_persist=True, expression=sql, output_field=field)


def leaf_word(key: str) -> models.GeneratedField:
    return leaf_part(
        django.db.models.expressions.RawSQL("(leaf_text::jsonb) ->> %s", (key,)),
        models.TextField(null=True),
    )


def leaf_number(key: str) -> models.GeneratedField:
    return leaf_part(
        django.db.models.expressions.RawSQL("((leaf_text::jsonb) ->> %s)::bigint", (key,)),
        models.BigIntegerField(null=True),
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0030_records")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="SealLeaf",
                    fields=[
                        ("leaf_index", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("leaf_text", models.TextField()),
                        ("leaf_hash", models.BinaryField()),
                        ("node_hashes", models.BinaryField()),
                        ("record_hashes", models.BinaryField(null=True)),
                        ("appended_at", models.DateTimeField(db_default=now())),
                        ("leaf_type", leaf_word("type")),
                        ("run_id", leaf_word("runId")),
                        ("from_sequence", leaf_number("fromSequence")),
                        ("to_sequence", leaf_number("toSequence")),
                        ("tenant", tenant()),
                    ],
                    options={"db_table": "seal_leaf"},
                ),
                migrations.CreateModel(
                    name="Checkpoint",
                    fields=[
                        ("size", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("origin", models.TextField()),
                        ("root_hash", models.BinaryField()),
                        ("note_text", models.TextField()),
                        ("signed_at", models.DateTimeField(db_default=now())),
                        ("last_leaf", models.BigIntegerField()),
                        ("tenant", tenant()),
                    ],
                    options={"db_table": "checkpoint"},
                ),
                migrations.CreateModel(
                    name="Anchor",
                    fields=[
                        ("size", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("place", models.TextField()),
                        ("answer", models.TextField(null=True)),
                        ("anchored_at", models.DateTimeField(db_default=now())),
                        ("tenant", tenant()),
                    ],
                    options={"db_table": "anchor"},
                ),
            ],
        )
    ]
