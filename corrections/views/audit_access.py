"""Who looked at what, and why; and the same lines as a file."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods

from corrections.actions.export_access_log import LINES_MAX, export_access_log
from corrections.forms import AccessExportForm, AccessFilter
from corrections.htmx import render_page
from corrections.paging import address, chips
from corrections.proof import must_be_proved
from corrections.queries.access_log import ACTS, Access, AccessWanted, accesses, count_of_accesses
from corrections.queries.names import names_of
from corrections.views.audit_export import file_response
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import LOOKING_REASONS

LINES_A_PAGE = 60


def _filter(request: HttpRequest) -> tuple[AccessFilter, AccessWanted]:
    """What the address asks for: of the page and of its file."""
    form = AccessFilter(request.GET)
    wanted = form.wanted()
    return form, AccessWanted(act=wanted.get("act"), **form.moments())


@require_GET
@in_tenant(*GOVERNING)
def access_log(visit: Visit) -> HttpResponse:
    request = visit.request
    form, wanted = _filter(request)
    given = request.GET.get("after", "")
    before = int(given) if given.isdecimal() and len(given) <= 18 else None
    found = (
        []
        if form.is_bad
        else accesses(visit.principal, wanted, before=before, limit=LINES_A_PAGE + 1)
    )
    shown = found[:LINES_A_PAGE]
    context = {
        "form": form,
        "chips": chips(request, form),
        "rows": [_row(visit, one) for one in shown],
        "names": names_of(visit.principal, (one.writer for one in shown)),
        "older": address(request, after=shown[-1].sequence) if len(found) > LINES_A_PAGE else None,
        "newest": address(request, drop=("after",)) if before is not None else None,
        "clear_url": request.path,
        "export_url": visit.url("access-export")
        + address(request, drop=("after",))[len(request.path) :],
    }
    return render_page(request, "audit/access.html", context, fragment="audit/_access.html")


def _row(visit: Visit, one: Access) -> dict[str, Any]:
    """One line in words, with where it leads."""
    told, url, name = one.details, None, None
    sequence = told.get("sequence", told.get("fromSequence"))
    if "runId" in told and sequence is not None:
        url, name = visit.url("entry", told["runId"], sequence), f"{told['runId']} #{sequence}"
    elif "runId" in told:
        url, name = visit.url("run", told["runId"]), told["runId"]
    elif "factId" in told:
        url, name = visit.url("audit-fact", told["factId"]), told["factId"]
    elif len(told.get("recordIds", ())) == 1:
        url, name = visit.url("audit-record", told["recordIds"][0]), told["recordIds"][0]
    return {
        "access": one,
        "words": ACTS.get(one.act, one.act),
        "reason": LOOKING_REASONS.get(told.get("reasonCode", ""), ""),
        "url": url,
        "name": name,
    }


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def export_access(visit: Visit) -> HttpResponse:
    """The lines that the filter shows, as one file."""
    request = visit.request
    filter_form, wanted = _filter(request)
    form = AccessExportForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        filter_form.must_fit()
        must_be_proved(visit)
        given = form.cleaned_data
        file = export_access_log(
            principal=visit.principal,
            wanted=wanted,
            format=given["format"],
            reason=given["reason"],
        )
        return file_response(file)
    count = (
        0 if filter_form.is_bad else count_of_accesses(visit.principal, wanted, most=LINES_MAX + 1)
    )
    context = {
        "form": form,
        "chips": chips(request, filter_form),
        "count": min(count, LINES_MAX),
        "is_cut": count > LINES_MAX,
        "most": LINES_MAX,
        "list_url": visit.url("access-log") + address(request)[len(request.path) :],
    }
    status = 422 if form.errors else 200
    return render_page(request, "audit/access_export.html", context, status=status)
