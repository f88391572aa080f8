"""Every way in which something that is kept can be destroyed, and what a legal hold makes of each: one table.

Two tests hold it to the code: no module destroys without being here, and nothing that is held goes on any of these ways. The
questions themselves are asked elsewhere: `hold_count` and `memory/hold_naming.py` under the lock of what goes, `destroy_facts` in
a second statement, and triggers that have the last word.
"""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["refused", "left", "sealed"]
"""What happens to what is held: the act is refused with `legal-hold`; it is passed over and counted; or it is served no more,
and its content is sealed until the release."""


@dataclass(frozen=True, slots=True)
class DestructivePath:
    """`module`: where it is decided; `of`: what it can destroy."""

    name: str
    of: Literal["facts", "records", "payloads"]
    outcome: Outcome
    module: str


PATHS: tuple[DestructivePath, ...] = (
    DestructivePath("delete", "facts", "refused", "memory/actions/delete_fact.py"),
    DestructivePath("supersede", "facts", "refused", "memory/actions/supersede_fact.py"),
    DestructivePath("refresh", "facts", "refused", "memory/actions/refresh_facts.py"),
    DestructivePath("import-of-runs", "facts", "left", "memory/actions/import_run.py"),
    DestructivePath("sweep", "facts", "left", "memory/actions/sweep_retention.py"),
    DestructivePath("re-index", "facts", "left", "memory/actions/reindex_facts.py"),
    DestructivePath("erasure-request", "facts", "refused", "memory/actions/create_erasure.py"),
    DestructivePath("erasure-of-facts", "facts", "refused", "memory/erasure/stores.py"),
    DestructivePath("erasure-of-records", "records", "refused", "memory/erasure/stores.py"),
    DestructivePath("erasure-of-payloads", "payloads", "refused", "memory/erasure/payloads.py"),
    DestructivePath("rejection-of-a-fact", "facts", "refused", "memory/actions/discard_fact.py"),
    DestructivePath(
        "roll-back-of-facts", "facts", "left", "memory/actions/roll_back_quarantine.py"
    ),
    DestructivePath("remember", "records", "refused", "memory/actions/remember.py"),
    DestructivePath("correct", "records", "refused", "memory/actions/correct.py"),
    DestructivePath("import", "records", "refused", "memory/actions/import_record.py"),
    DestructivePath("undo", "records", "refused", "memory/actions/undo_receipt.py"),
    DestructivePath("approval", "records", "refused", "memory/records/admitting.py"),
    DestructivePath("rejection", "records", "sealed", "memory/actions/reject_review.py"),
    DestructivePath("complaint", "records", "sealed", "memory/records/complaints.py"),
    DestructivePath("roll-back", "records", "sealed", "memory/actions/roll_back_quarantine.py"),
    DestructivePath("forget", "records", "sealed", "memory/actions/forget_record.py"),
    DestructivePath("cascade", "records", "sealed", "memory/records/ending.py"),
    DestructivePath("expiry", "records", "sealed", "memory/actions/expire_overdue.py"),
    DestructivePath("expiry-on-recall", "records", "sealed", "memory/actions/recall.py"),
    DestructivePath("beginning", "records", "sealed", "memory/records/upcoming.py"),
    DestructivePath("emit", "records", "sealed", "memory/actions/emit_event.py"),
    DestructivePath("route", "records", "sealed", "memory/actions/act_on_route.py"),
    DestructivePath("undo-purge", "records", "sealed", "memory/housekeeping.py"),
    DestructivePath("restore-of-facts", "facts", "left", "memory/actions/replay_endings.py"),
    DestructivePath("restore", "records", "sealed", "memory/actions/replay_endings.py"),
    DestructivePath("undo-purge-of-a-restore", "records", "sealed", "kindmem/backups/restoring.py"),
)
"""By what calls it. Closing a tenant is refused while any hold is in force, whatever it names."""

RELEASE = "memory/hold_items.py"
"""The one place that destroys what a hold kept: when it is released, and no other keeps it."""
