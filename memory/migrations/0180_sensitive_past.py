"""What is sensitive and past its last day is found by the index, also where something took its place before."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0200_log_pseudonyms")]
    operations = [sql_migration(__file__)]
