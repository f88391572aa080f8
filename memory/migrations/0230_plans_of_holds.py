"""Triggers that catch what is new for holds, whatever plan their session made of them first."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0210_acts_of_the_log")]
    operations = [sql_migration(__file__)]
