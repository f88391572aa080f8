"""Erasures that a hold stops wait without refusing writes, reach only what was there before, and may be cancelled."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0240_ended_items")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField("Erasure", "reaches_before", models.DateTimeField(null=True)),
                migrations.AddField("Erasure", "cancelled_at", models.DateTimeField(null=True)),
            ],
        )
    ]
