"""How the run log names people: by their ids, or by keyed hashes from the start."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0092_quotas")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.AddField("Tenant", "log_ids", models.TextField(default="plain")),
                migrations.AddField("Erasure", "selector_in_log", models.TextField(null=True)),
            ],
        )
    ]
