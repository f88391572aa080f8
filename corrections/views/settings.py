"""How the reader wants to see this workspace, and the way to sessions, passkeys and password."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from corrections.actions.keep_settings import keep_settings
from corrections.forms import SettingsForm
from corrections.htmx import render_page
from corrections.look import THEME_COOKIE, THEMES
from corrections.visit import Visit, in_tenant
from memory.actions.switch_inferences import may_be_inferred_about

_YEAR_SECONDS = 365 * 24 * 3600


@require_http_methods(["GET", "POST"])
@in_tenant("owner", "admin", "auditor", "person")
def settings(visit: Visit) -> HttpResponse:
    request = visit.request
    if request.method == "POST":
        form = SettingsForm(request.POST)
        if form.is_valid():
            given = form.cleaned_data
            keep_settings(
                principal=visit.principal,
                time_zone=given["time_zone"],
                shortcuts=given["shortcuts"],
            )
            messages.success(request, _("Saved."))
            response = HttpResponseRedirect(request.path)
            _keep_theme(response, given["theme"], is_secure=request.is_secure())
            return response
    else:
        form = SettingsForm(
            initial={
                "time_zone": visit.settings.get("timeZone") or "",
                "theme": request.COOKIES.get(THEME_COOKIE, ""),
                "shortcuts": visit.has_shortcuts,
            }
        )
    status = 422 if form.errors else 200
    about = visit.principal.subject
    may_infer = about is not None and may_be_inferred_about(visit.principal.tenant_id, about)
    context = {"form": form, "is_person": about is not None, "may_infer": may_infer}
    return render_page(request, "settings.html", context, status=status)


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
