"""Close the workspace, for its owner: what stands in the way, what is kept, and the end, sealed before the page is answered."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from corrections.htmx import render_page
from corrections.proof import must_be_proved
from corrections.visit import Visit, in_tenant
from memory.actions.close_tenant import close_tenant
from memory.actions.seal_tenant import seal_tenant
from memory.errors import BadInput, DomainError, ErasureInProgress, LegalHoldActive
from memory.holds import note_refusal

_REFUSED = (BadInput, ErasureInProgress, LegalHoldActive)


@require_http_methods(["GET", "POST"])
def close(request: HttpRequest, tenant: str) -> HttpResponseBase:
    """The page, and after it is closed the last seal: from then on the worker leaves the tenant alone."""
    closed: list[Visit] = []
    answer = _close(request, tenant, closed=closed)
    if not closed:
        return answer
    seal_tenant(tenant_id=closed[0].principal.tenant_id, tenant_slug=tenant)
    messages.success(request, _("Closed. Nobody comes in any more."))
    return redirect("tenants")


@in_tenant("owner")
def _close(visit: Visit, closed: list[Visit]) -> HttpResponse:
    refusal: DomainError | None = None
    if visit.request.method == "POST":
        must_be_proved(visit)
        try:
            with transaction.atomic():
                close_tenant(
                    principal=visit.principal, slug=visit.request.POST.get("slug", "").strip()
                )
            closed.append(visit)
        except _REFUSED as error:
            refusal = error
            if isinstance(error, LegalHoldActive):
                note_refusal(visit.principal, "tenant.close", error.ids)
    status = 200 if refusal is None else 422 if isinstance(refusal, BadInput) else 409
    context = {"refusal": refusal.code if refusal else None}
    return render_page(visit.request, "govern/close.html", context, status=status)
