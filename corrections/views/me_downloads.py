"""Take everything home that is remembered about me: what the file will hold, and then one whole file."""

from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from corrections.actions.export_memory import ROWS_MAX, export_memory
from corrections.forms import DownloadForm
from corrections.htmx import render_page
from corrections.proof import is_proved, must_be_proved, needs_account
from corrections.queries.about_me import counts_about_me
from corrections.visit import Visit, in_tenant


@require_http_methods(["GET", "POST"])
@in_tenant(about_self=True)
def downloads(visit: Visit) -> HttpResponseBase:
    request = visit.request
    if visit.is_guest:
        return needs_account(visit)
    form = DownloadForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        must_be_proved(visit)
        made = export_memory(principal=visit.principal, format=form.cleaned_data["format"])
        response = FileResponse(
            made.file, as_attachment=True, filename=made.name, content_type=made.content_type
        )
        response["Kindmem-Sha256"] = made.sha256
        return response
    counts = counts_about_me(visit.principal)
    context = {
        "form": form,
        "counts": counts | {"entry": counts["log-entry"]},
        "total": sum(counts.values()),
        "is_cut": max(counts.values()) > ROWS_MAX,
        "most": ROWS_MAX,
        "is_proved": is_proved(request),
    }
    status = 422 if form.errors else 200
    return render_page(request, "me/downloads.html", context, status=status)
