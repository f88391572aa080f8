"""What one key or one run wrote, out of use."""

import django.db.models.deletion
from django.db import migrations, models

from memory.sql_migration import sql_migration


def _tenant() -> tuple[str, models.ForeignKey]:
    return (
        "tenant",
        models.ForeignKey(
            db_constraint=False,
            db_index=False,
            on_delete=django.db.models.deletion.DO_NOTHING,
            related_name="+",
            to="memory.tenant",
        ),
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0090_reviews")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="Quarantine",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("selector", models.TextField()),
                        ("selector_id", models.TextField()),
                        ("since", models.DateTimeField()),
                        ("reason", models.TextField()),
                        ("status", models.TextField(default="active")),
                        ("placed_by", models.TextField()),
                        ("placed_at", models.DateTimeField()),
                        ("ended_by", models.TextField(null=True)),
                        ("ended_at", models.DateTimeField(null=True)),
                        _tenant(),
                    ],
                    options={"db_table": "quarantine"},
                ),
                migrations.CreateModel(
                    name="QuarantineItem",
                    fields=[
                        ("quarantine_id", models.UUIDField(primary_key=True, serialize=False)),
                        ("kind", models.TextField()),
                        ("item_id", models.TextField()),
                        ("outcome", models.TextField(null=True)),
                        ("restored_id", models.TextField(null=True)),
                        _tenant(),
                    ],
                    options={"db_table": "quarantine_item"},
                ),
            ],
        )
    ]
