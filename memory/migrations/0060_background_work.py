"""What the worker brings up to date by itself: types that changed their searches, views that grow stale."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0052_erasures")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="Reindexing",
                    fields=[
                        ("type", models.TextField(primary_key=True, serialize=False)),
                        (
                            "requested_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("after_fact_id", models.TextField(default="")),
                        ("looked_through_at", models.DateTimeField(null=True)),
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
                        "db_table": "reindexing",
                    },
                ),
            ],
        )
    ]
