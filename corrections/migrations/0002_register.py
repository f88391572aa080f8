"""The order in which the register of what ended is read."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("corrections", "0001_pages"), ("memory", "0050_sweep")]
    operations = [sql_migration(__file__)]
