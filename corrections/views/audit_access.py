"""Who looked at what, and why."""

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from corrections.forms import AccessFilter
from corrections.htmx import render_page
from corrections.paging import address, chips
from corrections.queries.access_log import ACTS, accesses
from corrections.queries.names import names_of
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import LOOKING_REASONS

LINES_A_PAGE = 60


@require_GET
@in_tenant(*GOVERNING)
def access_log(visit: Visit) -> HttpResponse:
    request = visit.request
    form = AccessFilter(request.GET)
    wanted = form.wanted()
    given = request.GET.get("after", "")
    before = int(given) if given.isdecimal() and len(given) <= 18 else None
    found = accesses(
        visit.principal,
        act=wanted.get("act"),
        before=before,
        **form.moments(),
        limit=LINES_A_PAGE + 1,
    )
    shown = found[:LINES_A_PAGE]
    rows = [
        {
            "access": one,
            "words": ACTS.get(one.act, one.act),
            "reason": LOOKING_REASONS.get(one.details.get("reasonCode", ""), ""),
            "sequence": one.details.get("sequence", one.details.get("fromSequence")),
            "run": one.details.get("runId"),
        }
        for one in shown
    ]
    context = {
        "form": form,
        "chips": chips(request, form),
        "rows": rows,
        "names": names_of(visit.principal, (one.writer for one in shown)),
        "older": address(request, after=shown[-1].sequence) if len(found) > LINES_A_PAGE else None,
        "newest": address(request, drop=("after",)) if before is not None else None,
        "clear_url": request.path,
    }
    return render_page(request, "audit/access.html", context, fragment="audit/_access.html")
