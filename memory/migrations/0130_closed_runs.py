"""Closing a run."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0120_page_maintenance")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField(
                    model_name="runhead",
                    name="closed_at",
                    field=models.DateTimeField(null=True),
                ),
            ],
        )
    ]
