"""An erasure in words: what it is about, how far it is, what each store cleared, and what is still where."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from corrections.words import Badge
from memory.erasure.ledger import ErasureView
from memory.page_maintenance import Standing

Words = str | Promise

KIND_WORDS: dict[str, Words] = {
    "user": _("A person, by the id that applications know them by"),
    "participant": _("A participant of a conversation"),
    "external": _("Somebody outside, whom facts are about"),
    "conversation": _("A conversation"),
    "fact": _("One fact"),
}
KIND_SHORT: dict[str, Words] = {
    "user": _("person"),
    "participant": _("participant"),
    "external": _("somebody outside"),
    "conversation": _("conversation"),
    "fact": _("fact"),
}
_STATES = {
    "pending": Badge("…", _("Waits its turn"), "info"),
    "running": Badge("…", _("Running"), "info"),
    "stopped": Badge("✗", _("Stopped"), "bad"),
    "held-up": Badge("‖", _("Waits for the release of a hold"), "held"),
    "cancelled": Badge("–", _("Cancelled"), ""),
    "completed": Badge("✓", _("Erased"), "ok"),
}
_PHASES: tuple[tuple[str, Words, Words], ...] = (
    ("seed", _("Look"), _("Everything in reach is found, and every hold is asked.")),
    (
        "expand",
        _("Widen"),
        _("What was derived from it is found too, and the holds are asked again."),
    ),
    (
        "settle",
        _("Settle"),
        _("Whoever was just writing about them is waited for; nobody new may."),
    ),
    ("facts", _("Facts"), _("Every version, with its place in the search index.")),
    ("records", _("Memories"), _("With all that was derived, and their sealed copies.")),
    ("log", _("Log"), _("What entries say; that they were there, and when, stays provable.")),
    ("rest", _("The rest"), _("Kept answers, page links, keys and members that name them.")),
    (
        "done",
        _("Done"),
        _("The last look finds nothing, and the id itself is taken out of the ledger."),
    ),
)
_STORES: dict[str, Words] = {
    "facts.fact": _("Facts"),
    "facts.fact_revision": _("Versions of facts"),
    "facts.fact_content": _("Contents of facts"),
    "facts.fact_subject": _("Whom facts were about"),
    "facts.fact_cause": _("Causes of facts"),
    "facts.fact_freshness": _("Freshness of cached facts"),
    "records": _("Memories"),
    "records.sealedCopies": _("Sealed copies of memories"),
    "log.payloads": _("Payloads of log entries"),
    "log.identifiersRetained": _("Log entries that keep the id, because it is part of their hash"),
    "idempotencyAnswers": _("Answers kept for retries"),
    "members": _("Members"),
    "keys": _("Keys that named them"),
    "pageLinks": _("Page links"),
    "pageForms": _("Sent forms"),
    "holdScopes": _("Scopes of released holds that named them"),
    "holdRefusals": _("What a hold refused them"),
    "held": _("Left to legal holds"),
}
_REASONS: dict[str, Words] = {
    "legal-hold": _(
        "A legal hold keeps something in its reach. It goes on by itself when the hold is released, with what was there until "
        "now; meanwhile new things may be written again."
    ),
    "ledger-unwritable": _(
        "The ledger outside the database can't be written, so it is not told as done. "
        "Whoever runs kindmem has to look at the disk."
    ),
    "interrupted": _("It was interrupted, and goes on with the next turn of the worker."),
}


@dataclass(frozen=True, slots=True)
class Phase:
    """`state`: past, now or to-come."""

    name: Words
    says: Words
    state: str


def state_of(erasure: ErasureView) -> Badge:
    if erasure.is_held_up:
        return _STATES["held-up"]
    is_stopped = erasure.last_error is not None and erasure.status != "completed"
    return _STATES["stopped" if is_stopped else erasure.state]


def phases_of(erasure: ErasureView) -> list[Phase]:
    """Each step, and which of them it is at."""
    names = [name for name, _title, _says in _PHASES]
    at = erasure.store if erasure.phase == "erase" else erasure.phase
    here = names.index(at) if at in names else len(names) - 1
    is_over = erasure.state == "completed"

    def state(place: int) -> str:
        if is_over or place < here:
            return "past"
        return "now" if place == here else "to-come"

    return [Phase(title, says, state(place)) for place, (_n, title, says) in enumerate(_PHASES)]


def counts_of(erasure: ErasureView) -> list[tuple[Words, int]]:
    """What each store cleared, in words, in the order of the stores."""
    counts = erasure.counts
    known = [(words, counts[store]) for store, words in _STORES.items() if store in counts]
    return known + [(store, n) for store, n in sorted(counts.items()) if store not in _STORES]


def reason_of(erasure: ErasureView) -> Words:
    return _REASONS.get(erasure.last_error or "", erasure.last_error or "")


def remains_of(erasure: ErasureView, standing: Standing) -> dict[str, Any]:
    """What is left of it outside the product: disk pages until when, backups until when."""
    next_by: datetime | None = None
    if standing.asked_at is not None:
        every = timedelta(hours=settings.KINDMEM_MAINTENANCE_HOURS)
        next_by = max(standing.asked_at, (standing.last_at or standing.asked_at) + every)
    return {
        "is_cleared": standing.has_cleared(erasure.completed_at),
        "cleared_at": standing.last_at,
        "left": standing.left,
        "next_by": next_by,
        "failure": standing.failure,
        "backup_days": settings.KINDMEM_BACKUP_DAYS,
        "backups_until": None
        if erasure.completed_at is None or not settings.KINDMEM_BACKUP_DAYS
        else erasure.completed_at + timedelta(days=settings.KINDMEM_BACKUP_DAYS),
    }
