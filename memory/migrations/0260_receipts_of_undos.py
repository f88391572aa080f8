"""The receipt that an undo took back is found by the undo's number."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0250_slow_webhooks")]
    operations = [sql_migration(__file__)]
