"""Before a tenant is chosen: the start, the list of workspaces, and the link that an app made for one person."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections import failure_pages
from corrections.htmx import unkept
from corrections.navigation import home_of
from corrections.page_links import open_page_link
from corrections.visit import Place, Visit, in_tenant
from memory.errors import NotFound
from memory.tenancy import tenant_context, tenant_id_of


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    return redirect("tenants")


@login_required
@require_GET
def tenants(request: HttpRequest) -> HttpResponse:
    """Every workspace of the person; with only one there is nothing to choose."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT slug, tenant_name, role FROM memberships_of(%s::int)", [request.user.pk]
        )
        places = [Place(*row) for row in cursor.fetchall()]
    if len(places) == 1:
        return redirect("home", places[0].slug)
    return unkept(render(request, "tenants.html", {"places": places}))


@require_GET
@in_tenant()
def home(visit: Visit) -> HttpResponse:
    return HttpResponseRedirect(home_of(visit))


@require_GET
@in_tenant()
def proved(visit: Visit) -> HttpResponse:
    """Where a proof of identity in a new tab ends: back to the tab that waits for it."""
    return unkept(render(visit.request, "state/proved.html"))


@require_http_methods(["GET", "POST"])
def page_link(request: HttpRequest, tenant: str, token: str) -> HttpResponse:
    """Asks before it opens: programs that look at links in messages must not open them or sign anybody out."""
    if request.method == "GET":
        return unkept(render(request, "page_link.html", {"tenant": tenant}))
    try:
        with transaction.atomic():
            tenant_id = tenant_id_of(tenant)
            with tenant_context(tenant_id):
                open_page_link(request, tenant_id, tenant, token)
    except NotFound:
        return failure_pages.failure_page(
            request,
            404,
            _("A link works for 15 minutes. Ask for a new one where you got this one."),
        )
    messages.info(request, _("You see your own pages for the next 15 minutes."))
    return HttpResponseRedirect(reverse("home", args=[tenant]))
