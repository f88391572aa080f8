"""How each witness stands to a tenant's log."""

import django.db.models.deletion
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0070_verification_jobs")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="WitnessStanding",
                    fields=[
                        ("witness", models.TextField(primary_key=True, serialize=False)),
                        ("origin", models.TextField()),
                        ("cosigned_size", models.BigIntegerField(default=0)),
                        ("failure", models.TextField(null=True)),
                        ("failed_size", models.BigIntegerField(null=True)),
                        ("failed_at", models.DateTimeField(null=True)),
                        ("attempts", models.IntegerField(default=0)),
                        ("retry_at", models.DateTimeField(null=True)),
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
                        "db_table": "witness_standing",
                    },
                ),
            ],
        )
    ]
