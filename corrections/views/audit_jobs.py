"""Verifications that the worker does: asked for, watched while they run, called off, and what came of them."""

from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET, require_POST

from corrections.htmx import render_page, wants_fragment
from corrections.once import sent_once
from corrections.queries.names import names_of
from corrections.queries.verifications import of_job
from corrections.verdict_words import compared
from corrections.views.audit_verify import show_result
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import TAMPERINGS, chain_badge, job_badge
from memory.actions.ask_verification import ask_verification, cancel_verification
from memory.queries.verification_jobs import verification_job


@require_POST
@in_tenant(*GOVERNING)
def verify_tenant(visit: Visit) -> HttpResponse:
    """Ask for the whole workspace, or for what came since the last checkpoint that was found good."""
    incremental = visit.request.POST.get("mode") == "incremental"

    def ask() -> str:
        asked = ask_verification(principal=visit.principal, incremental=incremental)
        return visit.url("verification-job", asked.id)

    return sent_once(visit, ask)


@require_GET
@in_tenant(*GOVERNING)
def job(visit: Visit, job_id: UUID) -> HttpResponse:
    found = verification_job(visit.principal, job_id)
    if found.run_id is not None and found.status == "done":
        if wants_fragment(visit.request):
            answer = HttpResponse()
            answer["HX-Redirect"] = visit.request.path
            return answer
        return show_result(visit, of_job(found))
    context = {
        "job": found,
        "badge": job_badge(found.status, found.state),
        "percent": 100 * found.entries_done // (found.entries_total or 1),
        "asked_by": names_of(visit.principal, [found.asked_by]).get(found.asked_by, found.asked_by),
        "states": [
            {"badge": chain_badge(state), "count": count} for state, count in found.states.items()
        ],
        "reports": [
            {
                "report": report,
                "badge": chain_badge(report["state"]),
                "what": TAMPERINGS[bad["class"]][0] if bad else "",
                "compared": compared(bad) if bad else None,
            }
            for report in found.reports
            for bad in [report.get("firstBad")]
        ],
    }
    return render_page(visit.request, "audit/job.html", context, fragment="audit/_job.html")


@require_POST
@in_tenant(*GOVERNING)
def cancel(visit: Visit, job_id: UUID) -> HttpResponse:
    cancel_verification(principal=visit.principal, job_id=job_id)
    return HttpResponseRedirect(visit.url("verification-job", job_id))
