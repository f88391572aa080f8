"""Indexes by which words of erasure are held against the acts of governance that erased."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0201_large_holds")]
    operations = [sql_migration(__file__)]
