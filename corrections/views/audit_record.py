"""One memory for those who govern: its envelope and history; for an auditor what it says is behind a logged reveal."""

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from corrections.actions.reveal_record import reveal_record, sees_value
from corrections.forms import ReasonForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.queries.names import names_of
from corrections.queries.standing import Standing, sealed_until
from corrections.register_words import (
    SUBJECT_TYPES,
    origin_words,
    reach_words,
    reason_words,
    standing_badge,
)
from corrections.remembered import remembered
from corrections.views.me_memory import ladder, past_act, quoted_entry
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import Words
from memory.queries.record_history import PastAct, record_history
from memory.queries.records import record_by_id
from memory.records.record import Record


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def record(visit: Visit, record_id: str) -> HttpResponse:
    found = record_by_id(visit.principal, record_id)
    form = ReasonForm(visit.request.POST if visit.request.method == "POST" else None)
    if visit.request.method == "POST" and form.is_valid():
        return _reveal(visit, found, form.cleaned_data["reason"])
    acts = record_history(visit.principal, record_id)
    context = {
        "memory": remembered(found),
        "record": found,
        "standing": Standing(sealed_until=sealed_until(visit.principal, found.id)),
        "is_entry": quoted_entry(visit, found.evidence_ref) is not None,
        "badge": standing_badge(found),
        "origin": origin_words(found),
        "reach": reach_words(found),
        "about": SUBJECT_TYPES.get(found.subject_type, found.subject_type),
        "sees_value": sees_value(visit.principal, found),
        # A reveal is of this memory; its history quotes others.
        "sees_history": visit.principal.role != "auditor",
        "past": [{**past_act(act), "reason": _why(act)} for act in acts],
        "names": names_of(visit.principal, [found.written_by, *(act.actor for act in acts)]),
        "ladder": ladder(found),
        "form": form,
        "once": new_key(),
    }
    status = 422 if form.errors else 200
    return render_page(visit.request, "audit/record.html", context, status=status)


def _reveal(visit: Visit, found: Record, reason: str) -> HttpResponse:
    def act() -> str:
        reveal_record(principal=visit.principal, record=found, reason=reason)
        return visit.request.path

    return sent_once(visit, act)


def _why(act: PastAct) -> Words:
    """Why it ended; of an act that ended nothing the name says it all."""
    return reason_words(act.reason_code) if act.to_status != "active" else ""
