"""Facts: typed, versioned records. A fact without `source` is Kind A, one with it (a cached view) is Kind B."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from memory.models.base import TenantModel
from memory.models.log import scope_part


class FactType(TenantModel):
    """The retrieval policy of one type: which searches, which model, what shape, how long."""

    type = models.TextField(primary_key=True)
    keyword = models.BooleanField(default=True)
    semantic = models.BooleanField(default=True)
    embedding_model = models.TextField(null=True)
    content_schema = models.TextField(null=True)
    keep_days = models.IntegerField(null=True)
    delete_after_days = models.IntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    updated_by = models.TextField()

    class Meta:
        db_table = "fact_type"

    def __str__(self) -> str:
        return self.type


class Fact(TenantModel):
    """The head of a fact: what reads filter on, and the lock of a change."""

    id = models.TextField(primary_key=True)
    type = models.TextField()
    scope_text = models.TextField()
    user_id = scope_part("userId")
    org_id = scope_part("orgId")
    project_id = scope_part("projectId")
    thread_id = scope_part("threadId")
    session_id = scope_part("sessionId")
    participant_id = scope_part("participantId")
    current_version = models.IntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    keep_ends_at = models.DateTimeField(null=True)
    keep_reason = models.TextField(null=True)
    unverified_until = models.DateTimeField(null=True)
    review = models.TextField(null=True)
    review_reason = models.TextField(null=True)
    deleted_at = models.DateTimeField(null=True)
    hold_count = models.IntegerField(default=0)
    wording = models.BinaryField(null=True)

    class Meta:
        db_table = "fact"

    def __str__(self) -> str:
        return self.id


class FactRevision(TenantModel):
    """One version of a fact. Never changed; closed once."""

    fact_id = models.TextField()
    version = models.IntegerField()
    revision_id = models.TextField(primary_key=True)
    supersedes = models.TextField(null=True)
    recorded_at = models.DateTimeField()
    content_hash = models.BinaryField(null=True)
    size_bytes = models.BigIntegerField(null=True)
    content_ref = models.TextField(null=True)
    retention_text = models.TextField(null=True)
    source_text = models.TextField(null=True)
    subjects_text = models.TextField(null=True)
    cause_ids = ArrayField(models.TextField(), default=list)
    valid_from = models.DateTimeField(null=True)
    valid_until = models.DateTimeField(null=True)
    observed_at = models.DateTimeField(null=True)
    trust = models.TextField()
    verified_by = models.TextField(null=True)
    verified_at = models.DateTimeField(null=True)
    attributed_kind = models.TextField()
    attributed_id = models.TextField()
    generated_run_id = models.TextField(null=True)
    written_by = models.TextField()
    written_by_role = models.TextField()
    invalidated_at = models.DateTimeField(null=True)
    invalidated_by = models.TextField(null=True)
    invalidation_reason = models.TextField(null=True)

    class Meta:
        db_table = "fact_revision"

    def __str__(self) -> str:
        return f"{self.fact_id} v{self.version}"


class FactContent(TenantModel):
    """The canonical text of one revision's content; the row that erasing removes."""

    fact_id = models.TextField(primary_key=True)
    version = models.IntegerField()
    content_text = models.TextField()

    class Meta:
        db_table = "fact_content"

    def __str__(self) -> str:
        return f"{self.fact_id} v{self.version}"


class FactFreshness(TenantModel):
    """When a cached view was last checked, and how it is refreshed."""

    fact_id = models.TextField(primary_key=True)
    strategy = models.TextField()
    handler = models.TextField(null=True)
    priority = models.IntegerField(default=0)
    ttl_seconds = models.BigIntegerField(null=True)
    last_verified_at = models.DateTimeField(null=True)
    etag = models.TextField(null=True)
    source_version = models.TextField(null=True)
    last_attempt_at = models.DateTimeField(null=True)
    last_failure = models.TextField(null=True)

    class Meta:
        db_table = "fact_freshness"

    def __str__(self) -> str:
        return self.fact_id


class FactSubject(TenantModel):
    """Whom one revision is about."""

    fact_id = models.TextField(primary_key=True)
    version = models.IntegerField()
    position = models.SmallIntegerField()
    kind = models.TextField()
    subject_id = models.TextField()

    class Meta:
        db_table = "fact_subject"

    def __str__(self) -> str:
        return f"{self.kind} of {self.fact_id}"


class FactCause(TenantModel):
    """A log entry that caused one revision, in temporal order."""

    fact_id = models.TextField(primary_key=True)
    version = models.IntegerField()
    position = models.SmallIntegerField()
    log_entry_id = models.TextField()

    class Meta:
        db_table = "fact_cause"

    def __str__(self) -> str:
        return f"{self.log_entry_id} of {self.fact_id}"
