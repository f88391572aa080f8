"""Export what a run's filter shows: what it will be in words, why, and then one whole file."""

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from corrections.actions.export_entries import ENTRIES_MAX, Export, export_run
from corrections.forms import EntriesFilter, ExportForm
from corrections.htmx import render_page
from corrections.paging import chips
from corrections.proof import must_be_proved
from corrections.queries.run_entries import count_of_entries, run_facts
from corrections.visit import GOVERNING, Visit, in_tenant
from memory.errors import LogNotFound


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def export(visit: Visit, run_id: str) -> HttpResponse:
    request = visit.request
    facts = run_facts(visit.principal, run_id)
    if facts is None:
        raise LogNotFound
    filter_form = EntriesFilter(request.GET)
    given = filter_form.wanted()
    form = ExportForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        filter_form.must_fit()
        must_be_proved(visit)
        return file_response(
            export_run(
                principal=visit.principal,
                run_id=run_id,
                kind=given.get("kind"),
                actor=given.get("actor"),
                format=form.cleaned_data["format"],
                reason=form.cleaned_data["reason"],
            )
        )
    count = (
        0
        if filter_form.is_bad
        else count_of_entries(
            visit.principal,
            run_id,
            kind=given.get("kind"),
            actor=given.get("actor"),
            most=ENTRIES_MAX + 1,
        )
    )
    context = {
        "run": facts,
        "form": form,
        "chips": chips(request, filter_form),
        "count": min(count, ENTRIES_MAX),
        "is_cut": count > ENTRIES_MAX,
        "most": ENTRIES_MAX,
    }
    status = 422 if form.errors else 200
    return render_page(request, "audit/export.html", context, status=status)


def file_response(file: Export) -> HttpResponse:
    """The file with its length and sum, to be saved."""
    response = HttpResponse(file.body, content_type=file.content_type)
    response["Content-Disposition"] = f'attachment; filename="{file.name}"'
    response["Content-Length"] = str(len(file.body))
    response["Kindmem-Sha256"] = file.sha256
    return response
