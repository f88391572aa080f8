"""How the reader wants to see this workspace, and the way to sessions, passkeys and password."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import translation
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from corrections.actions.keep_settings import keep_settings
from corrections.forms import SettingsForm
from corrections.htmx import render_page
from corrections.look import THEME_COOKIE, THEMES
from corrections.proof import needs_account
from corrections.visit import Visit, in_tenant
from memory.actions.switch_inferences import may_be_inferred_about

_YEAR_SECONDS = 365 * 24 * 3600


@require_http_methods(["GET", "POST"])
@in_tenant("owner", "admin", "auditor", "person")
def settings(visit: Visit) -> HttpResponse:
    request = visit.request
    if visit.is_guest:
        return needs_account(visit)
    form = SettingsForm(request.POST) if request.method == "POST" else _as_kept(visit)
    if form.is_bound and form.is_valid():
        return _saved(visit, form.cleaned_data)
    status = 422 if form.errors else 200
    about = visit.principal.subject
    may_infer = about is not None and may_be_inferred_about(visit.principal.tenant_id, about)
    context = {"form": form, "is_person": about is not None, "may_infer": may_infer}
    return render_page(request, "settings.html", context, status=status)


def _as_kept(visit: Visit) -> SettingsForm:
    return SettingsForm(
        initial={
            "time_zone": visit.settings.get("timeZone") or "",
            "language": visit.language or "",
            "theme": visit.request.COOKIES.get(THEME_COOKIE, ""),
            "shortcuts": visit.has_shortcuts,
        }
    )


def _saved(visit: Visit, given: dict[str, Any]) -> HttpResponse:
    keep_settings(
        principal=visit.principal,
        time_zone=given["time_zone"],
        shortcuts=given["shortcuts"],
        language=given["language"],
    )
    with translation.override(given["language"] or get_language()):
        messages.success(visit.request, _("Saved."))
    response = HttpResponseRedirect(visit.request.path)
    _keep_theme(response, given["theme"], is_secure=visit.request.is_secure())
    return response


def _keep_theme(response: HttpResponse, theme: str, *, is_secure: bool) -> None:
    """A cookie, so that the server can render the first page in the right colours already."""
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            theme,
            max_age=_YEAR_SECONDS,
            secure=is_secure,
            httponly=True,
            samesite="Lax",
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
