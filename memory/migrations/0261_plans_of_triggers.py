"""Triggers that read a fact or a record for each row, whatever plan their session made of them first."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0260_receipts_of_undos")]
    operations = [sql_migration(__file__)]
