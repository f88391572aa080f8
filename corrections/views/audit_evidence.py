"""Take a run's signed evidence bundle, and see who took which: the sums by which a copy is told apart."""

import tempfile
from contextlib import ExitStack
from typing import Any

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms import ReasonForm
from corrections.htmx import render_page
from corrections.paging import address
from corrections.proof import must_be_proved
from corrections.queries.access_log import Access, AccessWanted, accesses
from corrections.queries.evidence import estimated_bytes
from corrections.queries.names import names_of
from corrections.queries.run_entries import run_facts
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import LOOKING_REASONS, chain_badge
from memory.actions.export_evidence import export_evidence
from memory.errors import LogNotFound

ENTRIES_MAX = 10_000
"""A page must answer in a few seconds; the command takes a run of any length."""
EXPORTS_SHOWN = 10
EXPORTS_A_PAGE = 40


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def evidence(visit: Visit, run_id: str) -> HttpResponseBase:
    request = visit.request
    facts = run_facts(visit.principal, run_id)
    if facts is None:
        raise LogNotFound
    form = ReasonForm(request.POST if request.method == "POST" else None)
    is_too_long = facts.entry_count > ENTRIES_MAX
    if request.method == "POST" and form.is_valid() and not is_too_long:
        must_be_proved(visit)
        return _bundle(visit, run_id, form.cleaned_data["reason"])
    found = accesses(
        visit.principal,
        AccessWanted(act="evidence.exported", run_id=run_id),
        limit=EXPORTS_SHOWN + 1,
    )
    context = {
        "run": facts,
        "standing": facts.standing,
        "form": form,
        "is_too_long": is_too_long,
        "most": ENTRIES_MAX,
        "weight": estimated_bytes(visit.principal, run_id, facts.entry_count),
        "has_more": len(found) > EXPORTS_SHOWN,
        **_shown(visit, found[:EXPORTS_SHOWN]),
    }
    status = 422 if form.errors or (request.method == "POST" and is_too_long) else 200
    return render_page(request, "audit/evidence.html", context, status=status)


def _bundle(visit: Visit, run_id: str, reason: str) -> FileResponse:
    """The bundle, written whole and logged before anything of it leaves."""
    with ExitStack() as until_failed:
        file = until_failed.enter_context(tempfile.TemporaryFile())
        exported = export_evidence(
            principal=visit.principal,
            run_id=run_id,
            target=file,
            most_entries=ENTRIES_MAX,
            reason=reason,
        )
        until_failed.pop_all()  # the answer closes it, after it was sent
    file.seek(0)
    response = FileResponse(
        file, as_attachment=True, filename=exported.file_name, content_type="application/zip"
    )
    response["Kindmem-Sha256"] = exported.sha256
    return response


@require_GET
@in_tenant(*GOVERNING)
def exports(visit: Visit) -> HttpResponse:
    """Every bundle that was taken, or those of one run."""
    request = visit.request
    run_id = request.GET.get("run") or None
    given = request.GET.get("after", "")
    before = int(given) if given.isdecimal() and len(given) <= 18 else None
    found = accesses(
        visit.principal,
        AccessWanted(act="evidence.exported", run_id=run_id),
        before=before,
        limit=EXPORTS_A_PAGE + 1,
    )
    shown = found[:EXPORTS_A_PAGE]
    context = {
        "run_id": run_id,
        "older": address(request, after=shown[-1].sequence)
        if len(found) > EXPORTS_A_PAGE
        else None,
        "newest": address(request, drop=("after",)) if before is not None else None,
        **_shown(visit, shown),
    }
    return render_page(request, "audit/evidence_exports.html", context)


def _shown(visit: Visit, found: list[Access]) -> dict[str, Any]:
    return {
        "exports": [
            {
                "access": one,
                "badge": chain_badge(one.details["state"]),
                "reason": LOOKING_REASONS.get(one.details.get("reasonCode", ""), ""),
            }
            for one in found
        ],
        "names": names_of(visit.principal, (one.writer for one in found)),
    }
