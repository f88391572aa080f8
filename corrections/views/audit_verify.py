"""Verify a run, and read what came of it: a verdict in words, where it breaks, what that proves and what to do."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.actions.verify_and_keep import verify_and_keep
from corrections.forms import VerifyForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address
from corrections.queries.names import names_of
from corrections.queries.run_entries import (
    EntryLine,
    RunFacts,
    entry_lines,
    named_after,
    run_facts,
)
from corrections.queries.verifications import Verification, verification, verifications
from corrections.verdict_words import (
    compared,
    does_not_prove,
    outside,
    proves,
    verdict,
    which_changed,
)
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import TAMPERINGS, chain_badge, job_badge
from memory.actions.ask_verification import ask_verification
from memory.errors import BadInput, LogNotFound, NotFound
from memory.hashing import ZERO_HASH, tag
from memory.queries.verification_jobs import verification_jobs

RESULTS_A_PAGE = 40
ENTRIES_AT_ONCE_MAX = 50_000
"""A page must answer in about a second; more is read by the worker."""
JOBS_SHOWN = 5


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def verify(visit: Visit, run_id: str) -> HttpResponse:
    request = visit.request
    facts = run_facts(visit.principal, run_id)
    if facts is None:
        raise LogNotFound
    form = VerifyForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        return sent_once(visit, lambda: _begin(visit, facts, form))
    context = {
        "run": facts,
        "standing": facts.standing,
        "form": form,
        "once": new_key(),
        "results": [_row(one) for one in verifications(visit.principal, run_id=run_id, limit=10)],
    }
    status = 422 if form.errors else 200
    return render_page(request, "audit/verify.html", context, status=status)


def _begin(visit: Visit, facts: RunFacts, form: VerifyForm) -> str:
    """Verify now, or where that takes long leave it to the worker; where what comes of it is read."""
    run_id, first, last = facts.run_id, form.cleaned_data["first"], form.cleaned_data["last"]
    end = facts.next_sequence - 1 if last is None else min(last, facts.next_sequence - 1)
    if end - (first or 0) < ENTRIES_AT_ONCE_MAX:
        result = verify_and_keep(
            principal=visit.principal,
            run_id=run_id,
            first=first,
            last=last,
            run_to=facts.next_sequence - 1,
        )
        return visit.url("verification", result)
    job = ask_verification(principal=visit.principal, run_id=run_id, first=first, last=last)
    return visit.url("verification-job", job.id)


def _row(result: Verification) -> dict[str, Any]:
    return {"result": result, "badge": chain_badge(result.state)}


@require_GET
@in_tenant(*GOVERNING)
def result(visit: Visit, result_id: UUID) -> HttpResponse:
    found = verification(visit.principal, result_id)
    if found is None:
        raise NotFound
    return show_result(visit, found)


def show_result(visit: Visit, found: Verification) -> HttpResponse:
    """What came of verifying one run, in words."""
    report = found.report
    facts = run_facts(visit.principal, found.run_id)
    context: dict[str, Any] = {
        "result": found,
        "report": report,
        "badge": chain_badge(found.state),
        "verdict": verdict(report),
        "run": facts,
        "asked_by": names_of(visit.principal, [found.asked_by]).get(found.asked_by, found.asked_by),
        "outside": outside(report, facts.next_sequence if facts else None),
        "proves": proves(report),
        "does_not_prove": does_not_prove(report),
        "bad": found.first_bad,
    }
    if found.first_bad is not None:
        context |= _damage(visit, found, found.first_bad)
    return render_page(visit.request, "audit/result.html", context)


def _damage(visit: Visit, found: Verification, bad: dict[str, Any]) -> dict[str, Any]:
    """The first bad place: what is wrong there, what stands against what, and what is around it."""
    title, meaning = TAMPERINGS.get(bad["class"], (bad["class"], ""))
    sequence, is_here = bad["sequence"], bad["runId"] == found.run_id
    around: list[EntryLine] = []
    named = None
    if is_here:
        around = entry_lines(visit.principal, found.run_id, after=max(-1, sequence - 3), limit=5)
        named = named_after(visit.principal, found.run_id, sequence)
    hashes = {line.sequence: line.entry_hash for line in around}
    before = hashes.get(sequence - 1)
    return {
        "is_here": is_here,
        "bad_title": title,
        "bad_meaning": meaning,
        "around": around,
        "compared": compared(bad, tag(ZERO_HASH) if sequence == 0 else before),
        "which_changed": which_changed(bad, named, hashes.get(sequence)),
    }


@require_GET
@in_tenant(*GOVERNING)
def results(visit: Visit) -> HttpResponse:
    request = visit.request
    found = verifications(
        visit.principal, before=_position(request.GET.get("after")), limit=RESULTS_A_PAGE + 1
    )
    shown, older = found[:RESULTS_A_PAGE], None
    if len(found) > RESULTS_A_PAGE:
        last = shown[-1]
        older = address(request, after=f"{last.finished_at.isoformat()}_{last.id}")
    context = {
        "rows": [_row(one) for one in shown],
        "names": names_of(visit.principal, (one.asked_by for one in shown)),
        "older": older,
        "newest": request.path if request.GET.get("after") else None,
        "jobs": [
            {"job": one, "badge": job_badge(one.status, one.state)}
            for one in verification_jobs(visit.principal, limit=JOBS_SHOWN)
        ],
        "once": new_key(),
    }
    if not shown and request.GET.get("after"):
        messages.info(request, _("That was the oldest one."))
    return render_page(request, "audit/results.html", context)


def _position(text: str | None) -> tuple[datetime, UUID] | None:
    if not text:
        return None
    at, _separator, result_id = text.rpartition("_")
    try:
        return datetime.fromisoformat(at), UUID(result_id)
    except ValueError:
        raise BadInput.at("after", "is not a place in this list") from None
