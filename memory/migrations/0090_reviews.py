"""What waits for a person's decision, and what it would change."""

import django.contrib.postgres.fields
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0130_closed_runs")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField("Fact", "review_reason", models.TextField(null=True)),
                migrations.AddField(
                    "MemoryRecord",
                    "would_supersede",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), null=True, size=None
                    ),
                ),
                migrations.AddField("PendingAct", "fact_id", models.TextField(null=True)),
            ],
        )
    ]
