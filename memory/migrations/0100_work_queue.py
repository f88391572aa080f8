"""The worker's queue."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0170_recalls_by_person")]
    operations = [sql_migration(__file__)]
