"""When disk pages were last cleared of what erasures took out of the tables."""

from django.db import migrations, models
from django.db.models.functions import Now

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0151_route_pages")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="PageMaintenance",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("status", models.TextField(default="due")),
                        ("asked_at", models.DateTimeField(db_default=Now())),
                        ("started_at", models.DateTimeField(null=True)),
                        ("finished_at", models.DateTimeField(null=True)),
                        ("rewritten_count", models.IntegerField(default=0)),
                        ("vacuumed_count", models.IntegerField(default=0)),
                        ("failure", models.TextField(null=True)),
                    ],
                    options={"db_table": "page_maintenance"},
                ),
            ],
        )
    ]
