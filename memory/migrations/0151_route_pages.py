"""An index for the pages of a tenant's own correction routes."""

from django.db import migrations

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0150_wording")]
    operations = [sql_migration(__file__)]
