"""The tenant's log of seals: leaves of its Merkle tree, signed heads, and where those are anchored. See docs/integrity.md."""

from django.db import models
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from memory.models.base import TenantModel


def leaf_word(key: str) -> models.GeneratedField:
    """A text column generated from the hashed leaf text, so that it can't say anything else."""
    return models.GeneratedField(
        expression=RawSQL("(leaf_text::jsonb) ->> %s", (key,)),
        output_field=models.TextField(null=True),
        db_persist=True,
    )


def leaf_number(key: str) -> models.GeneratedField:
    """The same for a number."""
    return models.GeneratedField(
        expression=RawSQL("((leaf_text::jsonb) ->> %s)::bigint", (key,)),
        output_field=models.BigIntegerField(null=True),
        db_persist=True,
    )


class SealLeaf(TenantModel):
    """One leaf, never changed. `leaf_text` is what is hashed; the rest follows from it and from the entries it covers."""

    leaf_index = models.BigIntegerField(primary_key=True)
    leaf_text = models.TextField()
    leaf_hash = models.BinaryField()
    node_hashes = models.BinaryField()
    record_hashes = models.BinaryField(null=True)
    appended_at = models.DateTimeField(db_default=Now())
    leaf_type = leaf_word("type")
    run_id = leaf_word("runId")
    from_sequence = leaf_number("fromSequence")
    to_sequence = leaf_number("toSequence")

    class Meta:
        db_table = "seal_leaf"

    def __str__(self) -> str:
        return f"leaf {self.leaf_index}: {self.leaf_type}"


class Checkpoint(TenantModel):
    """A signed tree head. The signing key is not in the database."""

    size = models.BigIntegerField(primary_key=True)
    origin = models.TextField()
    root_hash = models.BinaryField()
    note_text = models.TextField()
    signed_at = models.DateTimeField(db_default=Now())
    last_leaf = models.BigIntegerField()

    class Meta:
        db_table = "checkpoint"

    def __str__(self) -> str:
        return f"{self.origin} at {self.size}"


class Anchor(TenantModel):
    """A note of where and when a checkpoint was written down outside. The copy there is what proves."""

    size = models.BigIntegerField(primary_key=True)
    place = models.TextField()
    answer = models.TextField(null=True)
    anchored_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "anchor"

    def __str__(self) -> str:
        return f"{self.size} at {self.place}"


class WitnessStanding(TenantModel):
    """What to ask a witness next, and why it gave no cosignature. Its cosignatures are anchors."""

    witness = models.TextField(primary_key=True)
    origin = models.TextField()
    cosigned_size = models.BigIntegerField(default=0)
    failure = models.TextField(null=True)
    failed_size = models.BigIntegerField(null=True)
    failed_at = models.DateTimeField(null=True)
    attempts = models.IntegerField(default=0)
    retry_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "witness_standing"

    def __str__(self) -> str:
        return f"{self.witness} at {self.cosigned_size}"
