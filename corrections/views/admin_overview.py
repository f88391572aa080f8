"""The admin's first page: what waits for them, and the way to everything that admins keep."""

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from corrections.admin_pages import OVERVIEW, pages_for
from corrections.htmx import render_page
from corrections.visit import APPOINTING, Visit, in_tenant
from corrections.waiting import what_waits


@require_GET
@in_tenant(*APPOINTING)
def overview(visit: Visit) -> HttpResponse:
    here = visit.url(OVERVIEW)
    context = {
        "waiting": what_waits(visit),
        "pages": [one for one in pages_for(visit) if one.url != here],
    }
    return render_page(visit.request, "govern/overview.html", context)
