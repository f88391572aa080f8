"""A form that is sent again with another text is told apart from one that is sent twice."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("corrections", "0002_register")]
    operations = [sql_migration(__file__)]
