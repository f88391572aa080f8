"""A hold that names much is placed at once, and takes in what it names batch by batch."""

from django.db import migrations, models
from django.db.models.functions import Now

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0180_sensitive_past")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField(
                    "LegalHold", "taken_in_at", models.DateTimeField(null=True, db_default=Now())
                ),
                migrations.AddField("LegalHold", "taking_in", models.TextField(default="facts")),
                migrations.AddField("LegalHold", "taken_in_after", models.TextField(default="")),
                migrations.AddField("LegalHold", "named_until", models.DateTimeField(null=True)),
            ],
        )
    ]
