"""What search keeps of the current revision of each live fact. Derived from its content, and gone with it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from memory.models.base import TenantModel


class FactDocument(TenantModel):
    """The lexemes of one fact with their counts; `length` is the sum of the counts."""

    fact_id = models.TextField(primary_key=True)
    language = models.TextField()
    length = models.IntegerField()
    lexemes = ArrayField(models.TextField(db_collation="C"))
    frequencies = ArrayField(models.SmallIntegerField())

    class Meta:
        db_table = "fact_document"

    def __str__(self) -> str:
        return self.fact_id


class Posting(TenantModel):
    """That a fact holds a lexeme, how often (`tf`), and how long the fact is (`dl`). Written by a trigger alone."""

    fact_id = models.TextField(primary_key=True)
    lexeme = models.TextField(db_collation="C")
    tf = models.SmallIntegerField()
    dl = models.IntegerField()

    class Meta:
        db_table = "posting"

    def __str__(self) -> str:
        return self.fact_id


class FactEmbedding(TenantModel):
    """The vector of one fact."""

    fact_id = models.TextField(primary_key=True)
    model = models.TextField()
    dims = models.IntegerField()
    embedding = HalfVectorField()

    class Meta:
        db_table = "fact_embedding"

    def __str__(self) -> str:
        return self.fact_id


class EmbeddingTask(TenantModel):
    """A vector that is still to be made."""

    fact_id = models.TextField(primary_key=True)
    model = models.TextField()
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    last_failure = models.TextField(null=True)

    class Meta:
        db_table = "embedding_task"

    def __str__(self) -> str:
        return self.fact_id
