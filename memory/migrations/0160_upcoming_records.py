"""A slot has a second place: for what will hold from a later day on, beside what holds until then."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0080_witnesses")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField(
                    model_name="memoryrecord",
                    name="is_upcoming",
                    field=models.BooleanField(default=False),
                ),
            ],
        )
    ]
