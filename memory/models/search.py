"""What search keeps of the current revision of each live fact. Derived from its content, and gone with it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from memory.models.base import TenantModel


class SearchRow(TenantModel):
    """What the read guard and the filters ask of a fact, beside what is searched. Filled in by triggers from the fact."""

    fact_id = models.TextField(primary_key=True)
    type = models.TextField()
    user_id = models.TextField(null=True)
    org_id = models.TextField(null=True)
    project_id = models.TextField(null=True)
    thread_id = models.TextField(null=True)
    session_id = models.TextField(null=True)
    participant_id = models.TextField(null=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    review = models.TextField(null=True)

    class Meta:
        abstract = True


class FactDocument(SearchRow):
    """The lexemes of one fact with their counts; `length` is the sum of the counts, `number` the fact's in postings."""

    number = models.BigIntegerField()
    length = models.IntegerField()
    language = models.TextField()
    lexemes = ArrayField(models.TextField(db_collation="C"))
    frequencies = ArrayField(models.SmallIntegerField())

    class Meta:
        db_table = "fact_document"

    def __str__(self) -> str:
        return self.fact_id


class Posting(TenantModel):
    """That a document holds a lexeme, how often, and how long the document is. Written by a trigger alone."""

    document = models.BigIntegerField(primary_key=True)
    length = models.IntegerField()
    frequency = models.SmallIntegerField()
    lexeme = models.TextField(db_collation="C")

    class Meta:
        db_table = "posting"

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.document}"


class FactEmbedding(SearchRow):
    """The vector of one fact."""

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


class Reindexing(TenantModel):
    """A type whose facts are being brought to a declaration that changed their searches."""

    type = models.TextField(primary_key=True)
    requested_at = models.DateTimeField(db_default=Now())
    after_fact_id = models.TextField(default="")
    looked_through_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "reindexing"

    def __str__(self) -> str:
        return self.type
