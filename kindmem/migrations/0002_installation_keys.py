"""Which keys this database was set up with."""

from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("kindmem", "0001_worker_heartbeat")]

    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="InstallationKeys",
                    fields=[
                        (
                            "is_only",
                            models.BooleanField(default=True, primary_key=True, serialize=False),
                        ),
                        ("digest", models.BinaryField()),
                    ],
                    options={"db_table": "installation_keys"},
                )
            ],
        )
    ]
