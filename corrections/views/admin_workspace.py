"""What admins set for the whole workspace: how long what people do can be undone, how new an admin may be to release a hold."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from corrections.actions.set_cooling_off import set_cooling_off, set_hours_of
from corrections.actions.set_undo_window import set_undo_window, undo_hours_of
from corrections.forms import WorkspaceForm
from corrections.htmx import render_page
from corrections.proof import must_be_proved
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.set_log_ids import pseudonymises_log_ids, set_log_ids


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def workspace(visit: Visit) -> HttpResponse:
    request = visit.request
    hours = undo_hours_of(visit.principal)
    form = WorkspaceForm(
        request.POST if request.method == "POST" else None,
        initial={
            "undo_hours": hours,
            "cooling_hours": set_hours_of(visit.principal),
            "pseudonymise": pseudonymises_log_ids(visit.principal),
        },
    )
    if request.method == "POST" and form.is_valid():
        must_be_proved(visit)
        _save(visit, form.cleaned_data)
        messages.success(request, _("Saved."))
        return HttpResponseRedirect(request.path)
    status = 422 if form.errors else 200
    context = {"form": form, "hours": hours}
    return render_page(request, "govern/workspace.html", context, status=status)


def _save(visit: Visit, said: dict[str, Any]) -> None:
    set_undo_window(principal=visit.principal, hours=said["undo_hours"])
    if said["cooling_hours"] is not None:
        set_cooling_off(principal=visit.principal, hours=said["cooling_hours"])
    set_log_ids(principal=visit.principal, pseudonymise=said["pseudonymise"])
