"""What a sweep left to open erasures, and how many of each type it took."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0101_webhooks")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField(
                    model_name="sweep",
                    name="erasing_count",
                    field=models.BigIntegerField(default=0),
                ),
                migrations.AddField(
                    model_name="sweep",
                    name="types_text",
                    field=models.TextField(default="{}"),
                ),
            ],
        )
    ]
