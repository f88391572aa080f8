"""The tenant's correction routes, for admins: list, reword, configure those that records named and nobody knew, add one."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms import NewRouteForm, RouteForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.register_route import change_route, register_route
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, RouteExists, RouteNotFound
from memory.records.routes import find_route, own_routes, routes_named

ROUTES_A_PAGE = 100


@require_GET
@in_tenant(*APPOINTING)
def routes(visit: Visit) -> HttpResponse:
    after = _position(visit)
    found = own_routes(visit.principal, after=after, limit=ROUTES_A_PAGE + 1)
    shown, older = found[:ROUTES_A_PAGE], None
    if len(found) > ROUTES_A_PAGE:
        place = [shown[-1].is_configured, shown[-1].name]
        older = address(
            visit.request, after=make_cursor(visit.principal, "correction-routes", {}, place)
        )
    context = {
        "unconfigured": [route for route in shown if not route.is_configured],
        "own": [route for route in shown if route.is_configured],
        "built_in": list(routes_named(visit.principal).values()),
        "is_first": after is None,
        "older": older,
        "newest": visit.request.path if after else None,
    }
    return render_page(visit.request, "govern/routes.html", context)


def _position(visit: Visit) -> tuple[bool, str] | None:
    given = visit.request.GET.get("after") or None
    try:
        place = read_cursor(visit.principal, "correction-routes", {}, given)
    except BadInput:
        return None  # not a place in this list: start from its beginning
    return (place[0], place[1]) if place else None


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def route(visit: Visit, name: str) -> HttpResponse:
    found = find_route(visit.principal, name)
    if found is None:
        raise RouteNotFound
    initial = {one: getattr(found, one) for one in RouteForm.base_fields}
    data = visit.request.POST if visit.request.method == "POST" else None
    form = RouteForm(data, initial=initial, is_built_in=found.is_built_in)
    if form.is_bound and form.is_valid():
        saved = _saved(visit, form, lambda fields: _change(visit, name, fields))
        if saved is not None:
            return saved
    status = 422 if form.errors else 200
    return render_page(
        visit.request,
        "govern/route.html",
        {"route": found, "form": form, "once": new_key()},
        status=status,
    )


def _change(visit: Visit, name: str, fields: dict[str, Any]) -> None:
    change_route(principal=visit.principal, name=name, fields=fields)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_route(visit: Visit) -> HttpResponse:
    form = NewRouteForm(visit.request.POST if visit.request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        saved = _saved(visit, form, lambda fields: _register(visit, fields))
        if saved is not None:
            return saved
    status = 422 if form.errors else 200
    return render_page(
        visit.request,
        "govern/route.html",
        {"route": None, "form": form, "once": new_key()},
        status=status,
    )


def _register(visit: Visit, fields: dict[str, Any]) -> None:
    register_route(principal=visit.principal, name=fields.pop("name"), fields=fields)


def _saved(visit: Visit, form: RouteForm, save: Any) -> HttpResponse | None:
    """To the list, or None with the refusal as the form's error."""
    fields = dict(form.cleaned_data)
    if "url_template" in fields:
        fields["url_template"] = fields["url_template"] or None

    def act() -> str:
        save(fields)
        messages.success(visit.request, _("Saved."))
        return visit.url("correction-routes")

    try:
        with transaction.atomic():
            return sent_once(visit, act)
    except RouteExists:
        form.add_error("name", _("There is a route of this name."))
    except BadInput as error:
        for issue in error.issues:
            name = issue["path"].strip("/")
            form.add_error(name if name in form.fields else None, issue["message"])
    return None
