"""Webhooks that are slow, apart from those that answer."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0230_plans_of_holds")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField("Webhook", "is_slow", models.BooleanField(default=False)),
            ],
        )
    ]
