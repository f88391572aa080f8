"""One entry: its permalink with neighbours inside the filter, the payload behind a logged reveal; and by its id from anywhere."""

from django.http import HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET, require_http_methods

from corrections.actions.reveal_entry import is_revealed, reveal_entry
from corrections.forms import EntriesFilter, ReasonForm
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address
from corrections.pretty import laid_out
from corrections.queries.names import names_of
from corrections.queries.run_entries import neighbours
from corrections.visit import GOVERNING, Visit, in_tenant
from corrections.words import kind_words
from memory.errors import LogNotFound
from memory.hashing import tag
from memory.log_entry import StoredEntry
from memory.queries.run_log import entries_by_ids, entry_by_id, run_log

PAYLOAD_SHOWN_MAX = 60_000
"""Characters; what is longer is cut on the page, and whole in an export."""


@require_http_methods(["GET", "POST"])
@in_tenant(*GOVERNING)
def entry(visit: Visit, run_id: str, sequence: int) -> HttpResponse:
    request = visit.request
    found = run_log(visit.principal, run_id, since_sequence=sequence, limit=1)
    if not found or found[0].sequence != sequence:
        raise LogNotFound
    if request.method == "POST":
        return _reveal(visit, found[0])
    return _page(visit, found[0], ReasonForm())


def _reveal(visit: Visit, entry: StoredEntry) -> HttpResponse:
    form = ReasonForm(visit.request.POST)
    if not form.is_valid():
        return _page(visit, entry, form, status=422)

    def act() -> str:
        reveal = reveal_entry(
            principal=visit.principal, entry=entry, reason=form.cleaned_data["reason"]
        )
        return address(visit.request, revealed=reveal) + "#payload"

    return sent_once(visit, act)


def _page(visit: Visit, entry: StoredEntry, form: ReasonForm, status: int = 200) -> HttpResponse:
    request = visit.request
    wanted = EntriesFilter(request.GET).wanted()
    before, after = neighbours(
        visit.principal,
        entry.run_id,
        entry.sequence,
        kind=wanted.get("kind"),
        actor=wanted.get("actor"),
    )
    reveal = request.GET.get("revealed")
    shown = None
    if reveal and entry.payload_text is not None and is_revealed(visit.principal, entry, reveal):
        shown = laid_out(entry.payload_text[:PAYLOAD_SHOWN_MAX])
    cause = None
    if entry.caused_by:
        cause = entries_by_ids(visit.principal.tenant_id, [entry.caused_by]).get(entry.caused_by)
    query = address(request, drop=("revealed",))[len(request.path) :]
    context = {
        "entry": entry,
        "entry_words": {"kind": entry.kind, "kind_words": kind_words(entry.kind)},
        "entry_hash": tag(entry.entry_hash or b""),
        "prev_hash": tag(entry.prev_hash or b""),
        "content_hash": tag(entry.content_hash) if entry.content_hash else None,
        "payload": shown,
        "payload_is_cut": len(entry.payload_text or "") > PAYLOAD_SHOWN_MAX,
        "payload_bytes": len((entry.payload_text or "").encode()),
        "scope": laid_out(entry.scope_text or ""),
        "cause": cause,
        "writer_name": names_of(visit.principal, [entry.writer]).get(entry.writer),
        "form": form,
        "once": new_key(),
        "before": before,
        "after": after,
        "query": query,
        "permalink": request.build_absolute_uri(request.path),
    }
    return render_page(request, "audit/entry.html", context, status=status)


@require_GET
@in_tenant(*GOVERNING)
def entry_by_its_id(visit: Visit, entry_id: str) -> HttpResponse:
    """From an id, as causes and evidence name it, to its place."""
    found = entry_by_id(visit.principal, entry_id)
    return HttpResponseRedirect(visit.url("entry", found.run_id, found.sequence))
