"""Memory records: the envelope, its value, and what surrounds them. docs/records.md tells the model.

The envelope stays for ever, in the end as a tombstone; value, past wordings and sealed copies can be taken away.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.expressions import RawSQL

from memory.models.base import TenantModel

LEVELS = ("instance", "task", "session", "project", "client", "user", "org")
"""How wide a record applies, narrowest first. Source: the memory record schema."""

SUBJECT_TYPES = ("user", "project", "client", "org")
AUTHORITIES = ("preference", "fact", "policy")
SOURCE_TYPES = ("user_stated", "system_record", "agent_inferred", "user_correction")
STATUSES = ("active", "superseded", "expired", "deleted")


def _generated(expression: str, field: models.Field) -> models.GeneratedField:
    return models.GeneratedField(
        expression=RawSQL(expression, ()),  # noqa: S611  # constants of this file
        output_field=field,
        db_persist=True,
    )


class MemoryRecord(TenantModel):
    """One thing remembered about a subject. Its value is a row of its own."""

    id = models.TextField(primary_key=True)
    subject_type = models.TextField()
    subject_id = models.TextField()
    key = models.TextField(db_collation="C")
    authority = models.TextField()
    source_type = models.TextField()
    source_rank = _generated(
        "CASE source_type WHEN 'user_stated' THEN 1 WHEN 'user_correction' THEN 1 WHEN 'system_record' THEN 2 ELSE 3 END",
        models.SmallIntegerField(),
    )
    evidence_kind = models.TextField()
    evidence_ref = models.TextField()
    observations = models.IntegerField()
    captured_at = models.DateTimeField()
    captured_by = models.TextField()
    source_of_truth = models.TextField(null=True)
    level = models.TextField()
    level_rank = _generated(
        "CASE level WHEN 'instance' THEN 1 WHEN 'task' THEN 2 WHEN 'session' THEN 3 WHEN 'project' THEN 4 "
        "WHEN 'client' THEN 5 WHEN 'user' THEN 6 ELSE 7 END",
        models.SmallIntegerField(),
    )
    bindings_text = models.TextField()
    bindings = _generated("bindings_text::jsonb", models.JSONField())
    binding_count = _generated(
        "jsonb_array_length(jsonb_path_query_array(bindings_text::jsonb, '$.keyvalue()'))",
        models.SmallIntegerField(),
    )
    bindings_hash = models.BinaryField()
    valid_from = models.DateField(null=True)
    valid_until = models.DateField(null=True)
    revalidate_on = ArrayField(models.TextField(), default=list)
    route = models.TextField()
    broadened = models.BooleanField(default=False)
    status = models.TextField(default="active")
    sensitivity = models.TextField()
    retain_value = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(null=True)
    deleted_reason = models.TextField(null=True)
    trust = models.TextField()
    review = models.TextField(null=True)
    review_reason = models.TextField(null=True)
    would_supersede = ArrayField(models.TextField(), null=True)
    confirmed_at = models.DateTimeField(null=True)
    disputed_at = models.DateTimeField(null=True)
    hold_count = models.IntegerField(default=0)
    written_by = models.TextField()
    written_by_role = models.TextField()
    recorded_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    version_from = models.DateTimeField()
    row_version = models.IntegerField(default=1)
    request_digest = models.BinaryField(null=True)
    is_upcoming = models.BooleanField(default=False)

    class Meta:
        db_table = "memory_record"

    def __str__(self) -> str:
        return self.id


class RecordValue(TenantModel):
    """The canonical text of one record's value; the row that forgetting removes."""

    record_id = models.TextField(primary_key=True)
    value_text = models.TextField()

    class Meta:
        db_table = "record_value"

    def __str__(self) -> str:
        return self.record_id


class SealedCopy(TenantModel):
    """What was taken away, encrypted, for a hold or for an undo."""

    record_id = models.TextField(primary_key=True)
    purpose = models.TextField()
    receipt_number = models.TextField(null=True)
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()
    sealed_at = models.DateTimeField()
    destroy_after = models.DateTimeField(null=True)

    class Meta:
        db_table = "sealed_copy"

    def __str__(self) -> str:
        return f"{self.record_id} for {self.purpose}"


class RecordPast(TenantModel):
    """What an active record said between two moments."""

    record_id = models.TextField(primary_key=True)
    row_version = models.IntegerField()
    from_at = models.DateTimeField()
    until_at = models.DateTimeField()
    level = models.TextField()
    bindings_text = models.TextField()
    valid_from = models.DateField(null=True)
    valid_until = models.DateField(null=True)
    observations = models.IntegerField()
    confirmed_at = models.DateTimeField(null=True)
    disputed_at = models.DateTimeField(null=True)
    trust = models.TextField()

    class Meta:
        db_table = "record_past"

    def __str__(self) -> str:
        return f"{self.record_id} v{self.row_version}"


class RecordUsage(TenantModel):
    """How often, and when last, recall answered with a record."""

    record_id = models.TextField(primary_key=True)
    use_count = models.BigIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "record_usage"

    def __str__(self) -> str:
        return self.record_id


class RecordLineage(TenantModel):
    """That a record was derived from another, which may not exist yet."""

    record_id = models.TextField(primary_key=True)
    parent_id = models.TextField()
    position = models.SmallIntegerField()

    class Meta:
        db_table = "record_lineage"

    def __str__(self) -> str:
        return f"{self.record_id} from {self.parent_id}"


class RecordSupersession(TenantModel):
    """Who replaced whom."""

    superseded_id = models.TextField(primary_key=True)
    successor_id = models.TextField()
    superseded_at = models.DateTimeField()

    class Meta:
        db_table = "record_supersession"

    def __str__(self) -> str:
        return f"{self.superseded_id} by {self.successor_id}"


class RecordObservation(TenantModel):
    """A run that an inference was observed in."""

    record_id = models.TextField(primary_key=True)
    run_key = models.TextField()
    observed_at = models.DateTimeField()

    class Meta:
        db_table = "record_observation"

    def __str__(self) -> str:
        return f"{self.record_id} in {self.run_key}"


class RecordListener(TenantModel):
    """An event type that ends a record."""

    event_type = models.TextField(db_collation="C")
    record_id = models.TextField(primary_key=True)

    class Meta:
        db_table = "record_listener"

    def __str__(self) -> str:
        return f"{self.record_id} on {self.event_type}"


class RecordDocument(TenantModel):
    """The words of an active record, for search. Its postings are written by a trigger alone."""

    record_id = models.TextField(primary_key=True)
    lexemes = ArrayField(models.TextField(db_collation="C"))

    class Meta:
        db_table = "record_document"

    def __str__(self) -> str:
        return self.record_id


class RecordPosting(TenantModel):
    """That an active record holds a word."""

    lexeme = models.TextField(db_collation="C")
    record_id = models.TextField(primary_key=True)

    class Meta:
        db_table = "record_posting"

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.record_id}"


class RecordAct(TenantModel):
    """One thing that happened to one record. An act on several has a row for each; one of them is the main one."""

    act_id = models.UUIDField(primary_key=True)
    record_id = models.TextField()
    act = models.TextField()
    is_main = models.BooleanField()
    from_record_id = models.TextField(null=True)
    from_status = models.TextField(null=True)
    to_status = models.TextField()
    actor = models.TextField()
    actor_role = models.TextField()
    acted_at = models.DateTimeField()
    reason_code = models.TextField()
    reason = models.TextField(null=True)
    scope_text = models.TextField()
    receipt_number = models.TextField(null=True)
    log_entry_id = models.TextField()

    class Meta:
        db_table = "record_act"

    def __str__(self) -> str:
        return f"{self.act} of {self.record_id}"


class UsedWord(TenantModel):
    """A user's message that was taken as their word for one act."""

    log_entry_id = models.TextField(primary_key=True)
    act_id = models.UUIDField()
    used_at = models.DateTimeField()

    class Meta:
        db_table = "used_word"

    def __str__(self) -> str:
        return self.log_entry_id


class ForgottenFingerprint(TenantModel):
    """A keyed digest of what was forgotten, retired, or may not be inferred."""

    digest = models.BinaryField(primary_key=True)
    kind = models.TextField()
    record_id = models.TextField()
    receipt_number = models.TextField(null=True)
    made_at = models.DateTimeField()

    class Meta:
        db_table = "forgotten_fingerprint"

    def __str__(self) -> str:
        return f"{self.kind} by {self.record_id}"


class Receipt(TenantModel):
    """What a person gets for an act on what is remembered."""

    number = models.TextField(primary_key=True)
    act_id = models.UUIDField()
    route = models.TextField()
    record_id = models.TextField()
    before_ids = ArrayField(models.TextField(), default=list)
    after_ids = ArrayField(models.TextField(), default=list)
    before_digest = models.BinaryField(null=True)
    after_digest = models.BinaryField(null=True)
    before_scope_text = models.TextField()
    scope_text = models.TextField()
    actor = models.TextField()
    actor_role = models.TextField()
    reason = models.TextField(null=True)
    statement = models.TextField(null=True)
    evidence_ref = models.TextField()
    log_entry_id = models.TextField()
    log_entry_hash = models.BinaryField()
    made_at = models.DateTimeField()
    undo_until = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)
    undone_by = models.TextField(null=True)

    class Meta:
        db_table = "receipt"

    def __str__(self) -> str:
        return self.number


class PendingAct(TenantModel):
    """An act that speaks for a person without their word, waiting for someone to decide."""

    id = models.TextField(primary_key=True)
    act = models.TextField()
    record_id = models.TextField(null=True)
    fact_id = models.TextField(null=True)
    subject_type = models.TextField(null=True)
    subject_id = models.TextField(null=True)
    key = models.TextField(null=True)
    body_text = models.TextField(null=True)
    reason_code = models.TextField()
    asked_by = models.TextField()
    asked_by_role = models.TextField()
    asked_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.TextField(null=True)
    decision = models.TextField(null=True)

    class Meta:
        db_table = "pending_act"

    def __str__(self) -> str:
        return f"{self.act} {self.id}"
