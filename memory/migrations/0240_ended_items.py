"""What ended, kept until it is written down outside the database."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0261_plans_of_triggers")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="EndedItem",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("item", models.TextField()),
                        ("item_id", models.TextField()),
                        ("act", models.TextField()),
                        ("was_id", models.TextField(null=True)),
                        ("version", models.IntegerField(null=True)),
                        ("mark", models.TextField(null=True)),
                        ("digest", models.BinaryField(null=True)),
                        (
                            "ended_at",
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
                    options={"db_table": "ended_item"},
                ),
            ],
        )
    ]
