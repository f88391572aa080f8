"""What the last verification of a run found."""

import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_facts")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="RunVerification",
                    fields=[
                        ("run_id", models.TextField(primary_key=True, serialize=False)),
                        ("state", models.TextField()),
                        ("verified_to", models.BigIntegerField()),
                        ("first_bad_sequence", models.BigIntegerField(null=True)),
                        ("first_bad_class", models.TextField(null=True)),
                        (
                            "verified_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("verified_by", models.TextField()),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=models.DO_NOTHING,
                                related_name="+",
                                to="memory.tenant",
                            ),
                        ),
                    ],
                    options={"db_table": "run_verification"},
                ),
            ],
        )
    ]
