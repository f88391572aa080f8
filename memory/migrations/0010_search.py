"""The search index: documents, postings, vectors and the vectors still to be made."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import pgvector.django.halfvec
from django.db import migrations, models

from memory.sql_migration import sql_migration


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_run_verification")]
    operations = [
        sql_migration(
            __file__,
            state=[
                migrations.CreateModel(
                    name="EmbeddingTask",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("model", models.TextField()),
                        ("attempts", models.IntegerField(default=0)),
                        (
                            "next_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("last_failure", models.TextField(null=True)),
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
                        "db_table": "embedding_task",
                    },
                ),
                migrations.CreateModel(
                    name="FactDocument",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("type", models.TextField()),
                        ("user_id", models.TextField(null=True)),
                        ("org_id", models.TextField(null=True)),
                        ("project_id", models.TextField(null=True)),
                        ("thread_id", models.TextField(null=True)),
                        ("session_id", models.TextField(null=True)),
                        ("participant_id", models.TextField(null=True)),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("review", models.TextField(null=True)),
                        ("number", models.BigIntegerField()),
                        ("length", models.IntegerField()),
                        ("language", models.TextField()),
                        (
                            "lexemes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(db_collation="C"), size=None
                            ),
                        ),
                        (
                            "frequencies",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.SmallIntegerField(), size=None
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
                        "db_table": "fact_document",
                    },
                ),
                migrations.CreateModel(
                    name="FactEmbedding",
                    fields=[
                        ("fact_id", models.TextField(primary_key=True, serialize=False)),
                        ("type", models.TextField()),
                        ("user_id", models.TextField(null=True)),
                        ("org_id", models.TextField(null=True)),
                        ("project_id", models.TextField(null=True)),
                        ("thread_id", models.TextField(null=True)),
                        ("session_id", models.TextField(null=True)),
                        ("participant_id", models.TextField(null=True)),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("review", models.TextField(null=True)),
                        ("model", models.TextField()),
                        ("dims", models.IntegerField()),
                        ("embedding", pgvector.django.halfvec.HalfVectorField()),
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
                        "db_table": "fact_embedding",
                    },
                ),
                migrations.CreateModel(
                    name="Posting",
                    fields=[
                        ("document", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("length", models.IntegerField()),
                        ("frequency", models.SmallIntegerField()),
                        ("lexeme", models.TextField(db_collation="C")),
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
                        "db_table": "posting",
                    },
                ),
            ],
        )
    ]
