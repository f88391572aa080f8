"""When the workers were last heard of."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="WorkerHeartbeat",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("beat_at", models.DateTimeField()),
            ],
            options={
                "db_table": "worker_heartbeat",
            },
        ),
    ]
