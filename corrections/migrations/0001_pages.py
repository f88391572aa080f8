"""What pages keep: sign-in attempts, page links, forms sent once, verification results."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    initial = True
    dependencies = [("memory", "0030_records")]
    operations = [sql_migration(__file__)]
