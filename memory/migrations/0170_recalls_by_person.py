"""The retrievals about one person are found without walking the log."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0091_quarantines")]
    operations = [sql_migration(__file__)]
