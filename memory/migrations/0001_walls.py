"""Tenants, members, keys, kept answers, and the wall around them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="Tenant",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("slug", models.TextField(unique=True)),
                        ("name", models.TextField()),
                        ("time_zone", models.TextField(default="UTC")),
                        ("search_language", models.TextField(default="english")),
                        ("hash_version", models.SmallIntegerField(default=1)),
                        ("undo_hours", models.IntegerField(default=24)),
                        ("settings", models.JSONField(default=dict)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("closed_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "db_table": "tenant",
                    },
                ),
                migrations.CreateModel(
                    name="Member",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        (
                            "role",
                            models.TextField(
                                choices=[
                                    ("owner", "Owner"),
                                    ("admin", "Admin"),
                                    ("auditor", "Auditor"),
                                    ("person", "Person"),
                                ]
                            ),
                        ),
                        (
                            "role_granted_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("role_granted_by", models.TextField(null=True)),
                        ("subject_id", models.TextField(null=True)),
                        ("settings", models.JSONField(default=dict)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("left_at", models.DateTimeField(null=True)),
                        (
                            "user",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.tenant",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "member",
                    },
                ),
                migrations.CreateModel(
                    name="ApiKey",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("prefix", models.TextField(unique=True)),
                        ("digest", models.BinaryField()),
                        ("pepper_version", models.SmallIntegerField()),
                        ("name", models.TextField()),
                        (
                            "role",
                            models.TextField(
                                choices=[
                                    ("agent", "Agent"),
                                    ("app", "App"),
                                    ("admin", "Admin"),
                                    ("auditor", "Auditor"),
                                ]
                            ),
                        ),
                        ("all_containers", models.BooleanField(default=False)),
                        (
                            "projects",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "orgs",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "users",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "participants",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "threads",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "on_behalf_of",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "abilities",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("created_by", models.TextField()),
                        ("expires_at", models.DateTimeField()),
                        ("revoked_at", models.DateTimeField(null=True)),
                        ("last_used_at", models.DateTimeField(null=True)),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.tenant",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "api_key",
                    },
                ),
                migrations.CreateModel(
                    name="IdempotencyKey",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("principal", models.TextField()),
                        ("key", models.TextField()),
                        ("request_digest", models.BinaryField()),
                        ("status", models.SmallIntegerField()),
                        ("answer", models.TextField(null=True)),
                        ("item_ref", models.TextField(null=True)),
                        ("scopes_text", models.TextField(null=True)),
                        ("withheld_at", models.DateTimeField(null=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("expires_at", models.DateTimeField()),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.tenant",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "idempotency_key",
                    },
                ),
            ],
        )
    ]
