"""What a live fact says, as a digest that facts which say the same have in common."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0160_upcoming_records")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField(
                    model_name="fact",
                    name="wording",
                    field=models.BinaryField(null=True),
                ),
            ],
        )
    ]
