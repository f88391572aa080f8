"""The run log: a head row a run, and its entries. The chain is described in docs/integrity.md."""

from django.db import models
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from memory.models.base import TenantModel

LOG_KINDS = (
    "user-message",
    "agent-message",
    "system-message",
    "tool-call",
    "tool-result",
    "internal-thought",
    "retrieval",
    "artifact-produced",
    "event-emitted",
    "event-received",
    "guardrail-triggered",
    "wait-suspended",
    "wait-resumed",
)
"""The closed set of entry kinds. Source: the kindgi memory schema 1.3.0."""

GOVERNANCE_RUN = "kindmem.governance"
RESERVED_RUN_PREFIX = "kindmem."


def scope_part(key: str) -> models.GeneratedField:
    """A column generated from the hashed scope text, for the read guard."""
    return models.GeneratedField(
        expression=RawSQL("(scope_text::jsonb) ->> %s", (key,)),
        output_field=models.TextField(null=True),
        db_persist=True,
    )


class RunHead(TenantModel):
    """The only row that an append updates; its lock serialises the run."""

    run_id = models.TextField(primary_key=True)
    next_sequence = models.BigIntegerField()
    head_hash = models.BinaryField()
    prev_hash = models.BinaryField()
    entry_count = models.BigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "run_head"

    def __str__(self) -> str:
        return self.run_id


class LogEntry(TenantModel):
    """One event of a run, never changed; only its payload may be erased."""

    run_id = models.TextField()
    sequence = models.BigIntegerField()
    id = models.TextField(primary_key=True)
    kind = models.TextField()
    scope_text = models.TextField()
    actor = models.TextField(null=True)
    recorded_at = models.DateTimeField()
    payload_text = models.TextField(null=True)
    payload_salt = models.TextField(null=True)
    content_hash = models.BinaryField(null=True)
    prev_hash = models.BinaryField()
    entry_hash = models.BinaryField()
    hash_version = models.SmallIntegerField(default=1)
    caused_by = models.TextField(null=True)
    payload_erased_at = models.DateTimeField(null=True)
    writer = models.TextField()
    writer_role = models.TextField()
    user_id = scope_part("userId")
    org_id = scope_part("orgId")
    project_id = scope_part("projectId")
    thread_id = scope_part("threadId")
    participant_id = scope_part("participantId")

    class Meta:
        db_table = "log_entry"

    def __str__(self) -> str:
        return f"{self.run_id}#{self.sequence}"


class RunVerification(TenantModel):
    """What the last verification of a run found, up to which sequence."""

    run_id = models.TextField(primary_key=True)
    state = models.TextField()
    verified_to = models.BigIntegerField()
    first_bad_sequence = models.BigIntegerField(null=True)
    first_bad_class = models.TextField(null=True)
    verified_at = models.DateTimeField(db_default=Now())
    verified_by = models.TextField()

    class Meta:
        db_table = "run_verification"

    def __str__(self) -> str:
        return f"{self.run_id}: {self.state}"


class VerificationJob(TenantModel):
    """A verification that the worker does: what was asked, how far it came, what it found."""

    id = models.UUIDField(primary_key=True)
    run_id = models.TextField(null=True)
    from_sequence = models.BigIntegerField(null=True)
    to_sequence = models.BigIntegerField(null=True)
    is_incremental = models.BooleanField(default=False)
    status = models.TextField(default="queued")
    since_size = models.BigIntegerField(null=True)
    checkpoint_size = models.BigIntegerField(null=True)
    runs_done = models.IntegerField(default=0)
    runs_total = models.IntegerField(default=0)
    entries_done = models.BigIntegerField(default=0)
    entries_total = models.BigIntegerField(default=0)
    state = models.TextField(null=True)
    found_text = models.TextField(null=True)
    asked_by = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    cancel_asked_at = models.DateTimeField(null=True)
    runner = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.IntegerField(default=0)

    class Meta:
        db_table = "verification_job"

    def __str__(self) -> str:
        return f"{self.id}: {self.status}"
