"""Who reads a page, in which tenant, in which zone: `in_tenant` opens the one transaction of a page and sets its tenant.

Another tenant's page is 404, whoever asks. Who is not signed in is sent to sign in and comes back; what they typed is kept. A
role that may not see a page reads which role may, and who grants it.
"""

import functools
import json
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import get_language

from corrections import failure_pages
from corrections.addresses import back_query, came_from
from corrections.htmx import is_htmx, unkept
from corrections.kept_forms import keep_form, set_cookie
from corrections.languages import offered
from corrections.page_links import principal_of_link
from corrections.views.refused import kept_fields
from memory.access import Principal
from memory.api.authentication import principal_of_member
from memory.api.errors import domain_error_of
from memory.errors import AuthMissing, DomainError, NotFound

GOVERNING = ("owner", "admin", "auditor")
APPOINTING = ("owner", "admin")
NEXT = "next"

_PLACES = """
SELECT p.slug, p.tenant_name, p.role, m.settings
FROM memberships_of(%(user)s::int) p
LEFT JOIN member m ON m.tenant_id = %(tenant)s::uuid AND m.tenant_id = p.tenant_id AND m.user_id = %(user)s::int
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A tenant that the reader is a member of."""

    slug: str
    name: str
    role: str


@dataclass(slots=True)
class Visit:
    """One reader on one page. `zone`: in which times are shown; `settings`: the reader's own, of this tenant."""

    request: HttpRequest
    principal: Principal
    tenant_name: str
    places: list[Place] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        return self.principal.tenant_slug

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        if self.request.GET.get("utc") == "1":
            return zoneinfo.ZoneInfo("UTC")
        return zoneinfo.ZoneInfo(self.settings.get("timeZone") or self.principal.time_zone)

    @property
    def language(self) -> str | None:
        """The one that the reader chose, while the installation has it."""
        chosen = self.settings.get("language")
        return chosen if chosen in dict(offered()) else None

    @property
    def has_shortcuts(self) -> bool:
        return bool(self.settings.get("shortcuts", True))

    @property
    def is_guest(self) -> bool:
        """Whether a page link brought the reader here, without an account."""
        return self.principal.kind == "link"

    def may(self, *roles: str) -> bool:
        return self.principal.role in roles

    def url(self, name: str, *args: Any) -> str:
        return reverse(name, args=[self.slug, *args])

    def onward(self, name: str, *args: Any) -> str:
        """A page's address that still knows which list the reader came from."""
        return self.url(name, *args) + back_query(came_from(self.request))

    def list_url(self, name: str) -> str:
        """A list as the reader left it, with filters and place; the plain one for who came another way."""
        plain, given = self.url(name), came_from(self.request)
        return given if given is not None and urlsplit(given).path == plain else plain


PageView = Callable[..., HttpResponseBase]


class AnswerInstead(Exception):
    """What a view has to answer before it goes on; whatever it had begun is rolled back."""

    def __init__(self, answer: HttpResponseBase) -> None:
        super().__init__()
        self.answer = answer


def in_tenant(*roles: str, about_self: bool = False) -> Callable[[PageView], PageView]:
    """A page of a tenant: `view(visit, **path)` runs in the tenant's transaction.

    roles: those that may see it; none given, every member. about_self: the reader must be a person that memory knows of.
    """

    def decorate(view: PageView) -> PageView:
        @functools.wraps(view)
        def page(request: HttpRequest, tenant: str, **path: Any) -> HttpResponseBase:
            try:
                with transaction.atomic():
                    visit = _open(request, tenant)
                    request.visit = visit  # type: ignore[attr-defined]  # read by the templates
                    language = visit.language or get_language()
                    with timezone.override(visit.zone), translation.override(language):
                        refused = _refusal(visit, roles, about_self)
                        return unkept(refused or view(visit, **path))
            except AnswerInstead as instead:
                return unkept(instead.answer)
            except AuthMissing:
                return signed_out(request)
            except (DomainError, DatabaseError, InterfaceError) as error:
                return failure_pages.of_error(request, domain_error_of(error))

        return page

    return decorate


def _open(request: HttpRequest, slug: str) -> Visit:
    """Raises AuthMissing when nobody is signed in, NotFound when the tenant is not one of theirs."""
    user = request.user
    if user.is_authenticated:
        try:
            principal = principal_of_member(user.pk, slug)
        except AuthMissing:
            raise NotFound from None
        with connection.cursor() as cursor:
            cursor.execute(_PLACES, {"user": user.pk, "tenant": principal.tenant_id})
            rows = cursor.fetchall()
        visit = Visit(request, principal, principal.tenant_slug)
        for place_slug, name, role, settings in rows:
            visit.places.append(Place(place_slug, name, role))
            if place_slug == slug:
                visit.tenant_name, visit.settings = name, json.loads(settings or "{}")
        return visit
    principal, name = principal_of_link(request, slug)
    return Visit(request, principal, name)


def _refusal(visit: Visit, roles: tuple[str, ...], about_self: bool) -> HttpResponse | None:
    if roles and not visit.may(*roles):
        context = {"needed": roles, "role": visit.principal.role}
    elif about_self and visit.principal.subject is None:
        context = {"needed": (), "role": visit.principal.role}
    else:
        return None
    return render(visit.request, "state/forbidden.html", context, status=403)


def signed_out(request: HttpRequest) -> HttpResponse:
    """To the sign-in page and back. A form that was sent is kept, and comes back after it for one press."""
    sign_in = reverse("account_login")
    if request.method in ("GET", "HEAD"):
        current = getattr(request.htmx, "current_url_abs_path", None) if is_htmx(request) else None  # type: ignore[attr-defined]
        target = f"{sign_in}?{urlencode({NEXT: current or request.get_full_path()})}"
        if is_htmx(request):
            response = HttpResponse(status=204)
            response["HX-Redirect"] = target
            return response
        return HttpResponseRedirect(target)
    kept = keep_form(request)
    context = {
        "kept": kept_fields(request),
        "send_to": request.get_full_path(),
        "is_kept": kept is not None,
        "sign_in": f"{sign_in}?{urlencode({NEXT: reverse('kept-form')})}" if kept else sign_in,
    }
    answer = unkept(render(request, "state/signed_out.html", context, status=401))
    if kept is not None:
        set_cookie(answer, kept)
    if is_htmx(request):
        answer["HX-Retarget"] = "body"  # a page of its own, not the content of a panel
    return answer
