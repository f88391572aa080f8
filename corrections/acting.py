"""What all acts on a memory share: whose it is, doing it once, the way to the receipt, and what to show when one came second."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.utils.translation import gettext as _

from corrections.once import sent_once
from corrections.queries.standing import live_now
from corrections.refusal_words import refusal_words
from corrections.remembered import remembered
from corrections.visit import APPOINTING, Visit
from memory.errors import (
    AlreadyDisputed,
    BadInput,
    DomainError,
    EvidenceUnresolved,
    FactChanged,
    InstanceUnnamed,
    InvariantViolated,
    LegalHoldActive,
    PolicyNotCorrectable,
    RecordChanged,
    RecordNotFound,
    RetentionViolation,
    UndoClosed,
)
from memory.holds import note_refusal
from memory.queries.records import record_by_id
from memory.records.receipts import Receipt
from memory.records.record import Record

_SHOWN_WITH_THE_FORM = (
    AlreadyDisputed,
    BadInput,
    EvidenceUnresolved,
    FactChanged,
    InstanceUnnamed,
    InvariantViolated,
    LegalHoldActive,
    PolicyNotCorrectable,
    RecordChanged,
    RetentionViolation,
    UndoClosed,
)


def own(visit: Visit, record: Record) -> None:
    """Raises RecordNotFound unless the record is about the reader: these are a person's own pages."""
    if record.subject_type != "user" or record.subject_id != visit.principal.subject:
        raise RecordNotFound


def own_record(visit: Visit, record_id: str) -> Record:
    """The record, when it is about the reader. Raises RecordNotFound."""
    record = record_by_id(visit.principal, record_id)
    own(visit, record)
    return record


def correctable_record(visit: Visit, record_id: str) -> Record:
    """The record, when it is about the reader; or about no person at all, and the reader governs. Raises RecordNotFound."""
    record = record_by_id(visit.principal, record_id)
    if record.subject_type == "user" or not visit.may(*APPOINTING):
        own(visit, record)
    return record


def done_once(
    visit: Visit, act: Callable[[], str], refused: Callable[[DomainError], HttpResponse]
) -> HttpResponse:
    """Do it, once; what can't be done comes back as the form with the text kept, and nothing half done.

    What a hold refused is noted, after what was begun has been rolled back.
    """
    try:
        with transaction.atomic():
            return sent_once(visit, act)
    except _SHOWN_WITH_THE_FORM as error:
        if isinstance(error, LegalHoldActive):
            note_refusal(visit.principal, "page", error.ids)
        return refused(error)


def receipt_url(visit: Visit, receipt: Receipt | None, record: Record | None = None) -> str:
    """Where the receipt is; without one the act waits for a decision. What is about no person is on nobody's receipts page."""
    if receipt is None:
        messages.info(visit.request, _("It waits for a decision."))
        return visit.list_url("memory-list")
    if record is None or record.subject_type == "user":
        return visit.onward("receipt", receipt.number)
    messages.success(
        visit.request, _("Done. The receipt is %(number)s.") % {"number": receipt.number}
    )
    return visit.onward("memory", receipt.after_ids[0] if receipt.after_ids else record.id)


def conflict(visit: Visit, error: DomainError | None, seen: Record) -> dict[str, Any]:
    """What the form says about a refusal. `now`: what stands there, when somebody was first; `before`: what the reader saw."""
    if error is None:
        return {"error": None}
    told: dict[str, Any] = {"error": refusal_words(error)}
    if isinstance(error, LegalHoldActive):
        return {**told, "title": _("It can't be changed now")}
    if isinstance(error, AlreadyDisputed):
        title = _("You said already that you disagree")
        return {**told, "title": title, "receipt_before": error.receipt}
    if not isinstance(error, RecordChanged):
        return {**told, "title": _("That can't be done")}
    ids = [error.active_id, seen.id] if error.active_id is not None else [seen.id]
    live = live_now(visit.principal, *ids)
    if live is None:
        return {**told, "title": _("It is not in use any more"), "over": seen.id}
    now = correctable_record(visit, live)
    return {**told, "now": remembered(now), "before": remembered(seen)}
