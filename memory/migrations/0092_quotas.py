"""How much a key may write in a window of time."""

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
    dependencies = [("memory", "0110_sweep_results")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField("ApiKey", "quota_writes", models.BigIntegerField(null=True)),
                migrations.AddField("ApiKey", "quota_bytes", models.BigIntegerField(null=True)),
                migrations.AddField("ApiKey", "quota_subjects", models.IntegerField(null=True)),
                migrations.AddField(
                    "ApiKey", "quota_window_seconds", models.IntegerField(default=3600)
                ),
                migrations.CreateModel(
                    name="QuotaUse",
                    fields=[
                        ("key_prefix", models.TextField(primary_key=True, serialize=False)),
                        ("window_start", models.DateTimeField()),
                        ("writes", models.BigIntegerField()),
                        ("bytes", models.BigIntegerField()),
                        _tenant(),
                    ],
                    options={"db_table": "quota_use"},
                ),
                migrations.CreateModel(
                    name="QuotaSubject",
                    fields=[
                        ("key_prefix", models.TextField(primary_key=True, serialize=False)),
                        ("digest", models.BinaryField()),
                        ("window_start", models.DateTimeField()),
                        _tenant(),
                    ],
                    options={"db_table": "quota_subject"},
                ),
            ],
        )
    ]
