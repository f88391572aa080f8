"""The domain in twenty lines.

A **tenant** is the outer wall. A **run** of an agent is a log: **log entries** in sequence, each naming the hash of the one
before, so that no past entry changes unseen. A **fact** is a typed, versioned record that an agent or an app wrote: a change is
a new **revision** that **supersedes** the one before; Kind A facts are what was written, Kind B facts are cached views of
something outside, with a **freshness**. A **memory record** is one thing an agent remembers about a subject, with its source,
its scope, its expiry and the named route by which a person corrects it; a correction binds to the instance corrected unless a
person widens it. A **legal hold** keeps what it names from being destroyed; a **tombstone** is what stays of what was forgotten.
"""

from memory.models.ended import EndedItem
from memory.models.erasure import Erasure
from memory.models.fact import (
    Fact,
    FactCause,
    FactContent,
    FactFreshness,
    FactRevision,
    FactSubject,
    FactType,
)
from memory.models.hold import (
    FactHold,
    HoldItem,
    HoldRefusal,
    HoldRelease,
    LegalHold,
    RecordHold,
)
from memory.models.log import (
    GOVERNANCE_RUN,
    LOG_KINDS,
    RESERVED_RUN_PREFIX,
    LogEntry,
    RunHead,
    RunVerification,
    VerificationJob,
)
from memory.models.maintenance import PageMaintenance
from memory.models.quarantine import Quarantine, QuarantineItem
from memory.models.quota import QuotaSubject, QuotaUse
from memory.models.record import (
    ForgottenFingerprint,
    MemoryRecord,
    PendingAct,
    Receipt,
    RecordAct,
    RecordDocument,
    RecordLineage,
    RecordListener,
    RecordObservation,
    RecordPast,
    RecordPosting,
    RecordSupersession,
    RecordUsage,
    RecordValue,
    SealedCopy,
    UsedWord,
)
from memory.models.route import CorrectionRoute, PolicySource
from memory.models.seal import Anchor, Checkpoint, SealLeaf, WitnessStanding
from memory.models.search import EmbeddingTask, FactDocument, FactEmbedding, Posting, Reindexing
from memory.models.sweep import DestroyedFact, Sweep, SweepClock
from memory.models.tenant import ApiKey, IdempotencyKey, Member, Tenant
from memory.models.webhook import Webhook, WebhookAttempt, WebhookDelivery, WebhookEvent

__all__ = [
    "GOVERNANCE_RUN",
    "LOG_KINDS",
    "RESERVED_RUN_PREFIX",
    "Anchor",
    "ApiKey",
    "Checkpoint",
    "CorrectionRoute",
    "DestroyedFact",
    "EmbeddingTask",
    "EndedItem",
    "Erasure",
    "Fact",
    "FactCause",
    "FactContent",
    "FactDocument",
    "FactEmbedding",
    "FactFreshness",
    "FactHold",
    "FactRevision",
    "FactSubject",
    "FactType",
    "ForgottenFingerprint",
    "HoldItem",
    "HoldRefusal",
    "HoldRelease",
    "IdempotencyKey",
    "LegalHold",
    "LogEntry",
    "Member",
    "MemoryRecord",
    "PageMaintenance",
    "PendingAct",
    "PolicySource",
    "Posting",
    "Quarantine",
    "QuarantineItem",
    "QuotaSubject",
    "QuotaUse",
    "Receipt",
    "RecordAct",
    "RecordDocument",
    "RecordHold",
    "RecordLineage",
    "RecordListener",
    "RecordObservation",
    "RecordPast",
    "RecordPosting",
    "RecordSupersession",
    "RecordUsage",
    "RecordValue",
    "Reindexing",
    "RunHead",
    "RunVerification",
    "SealLeaf",
    "SealedCopy",
    "Sweep",
    "SweepClock",
    "Tenant",
    "UsedWord",
    "VerificationJob",
    "Webhook",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEvent",
    "WitnessStanding",
]
