"""Runs for those who audit: the list with its filters, and one run as a timeline, by cause, or as a table."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from corrections.cause_tree import by_cause
from corrections.forms import EntriesFilter, RunsFilter
from corrections.htmx import render_page, wants_fragment
from corrections.paging import address, chips
from corrections.queries.names import names_of
from corrections.queries.run_entries import (
    EntryLine,
    count_of_entries,
    count_of_newer_runs,
    count_of_runs,
    covered,
    entry_lines,
    run_facts,
)
from corrections.run_standing import standing
from corrections.visit import GOVERNING, Visit, in_tenant
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, LogNotFound
from memory.queries.run_log import check_run_is_readable, run_heads

RUNS_A_PAGE = 40
ENTRIES_A_PAGE = 60
COUNTED_MOST = 10_000
VIEWS = ("timeline", "cause", "table")
_NO_TIME = "9999-01-01T00:00:00.000Z"


@require_GET
@in_tenant(*GOVERNING)
def runs(visit: Visit) -> HttpResponse:
    request = visit.request
    form = RunsFilter(request.GET)
    wanted = form.wanted()
    if "run" in wanted and run_facts(visit.principal, wanted["run"]) is not None:
        return HttpResponseRedirect(visit.url("run", wanted["run"]))
    filters = _filters(form, wanted)
    cursor_filters = {**filters, "page": "runs"}
    try:
        position = read_cursor(
            visit.principal, "runs", cursor_filters, request.GET.get("after") or None
        )
    except BadInput:
        position = None  # the filter changed: start from the newest
    heads = (
        []
        if form.is_bad or "run" in wanted
        else run_heads(
            visit.principal,
            **filters,
            after=(position[0], position[1]) if position else None,
            limit=RUNS_A_PAGE + 1,
        )
    )
    shown = heads[:RUNS_A_PAGE]
    for head in shown:
        found = head["integrity"]
        head["standing"] = standing(
            state=found["state"],
            verified_to=found.get("verifiedTo"),
            verified_at=found.get("verifiedAt"),
            next_sequence=head["entries"],
        )
    older = None
    if len(heads) > RUNS_A_PAGE:
        last = shown[-1]
        cursor = make_cursor(
            visit.principal, "runs", cursor_filters, [last["firstAt"], last["runId"]]
        )
        older = address(request, after=cursor)
    context = {
        "form": form,
        "chips": chips(request, form),
        "heads": shown,
        "older": older,
        "newest": address(request, drop=("after",)) if position else None,
        "total": None if shown else count_of_runs(visit.principal, most=COUNTED_MOST),
        "clear_url": request.path,
        "newest_at": shown[0]["firstAt"] if shown and not position else None,
        "newer_url": visit.url("newer-runs")
        + address(request, drop=("after",))[len(request.path) :],
    }
    return render_page(request, "audit/runs.html", context, fragment="audit/_runs.html")


@require_GET
@in_tenant(*GOVERNING)
def newer_runs(visit: Visit) -> HttpResponse:
    """How many runs of the filter began since; a fragment for the pill, and without htmx the list itself, filter and all."""
    request = visit.request
    began, form = request.GET.get("began", ""), RunsFilter(request.GET)
    page = visit.url("runs") + address(request, drop=("began", "after"))[len(request.path) :]
    if not wants_fragment(request):
        return HttpResponseRedirect(page)
    count = _count_of_newer(visit, form, began)
    words = ngettext("%(count)d new run – show", "%(count)d new runs – show", count)
    return _pill(request, count, words % {"count": count}, page)


def _count_of_newer(visit: Visit, form: RunsFilter, began: str) -> int:
    """Of a filtered list only as many as its page holds are counted."""
    wanted = form.wanted()
    try:
        datetime.fromisoformat(began)
    except ValueError:
        return 0
    if form.is_bad or "run" in wanted:
        return 0
    if not wanted:
        return count_of_newer_runs(visit.principal, began, most=1000)
    heads = run_heads(visit.principal, **_filters(form, wanted), limit=RUNS_A_PAGE)
    return sum(head["firstAt"] > began for head in heads)


def _filters(form: RunsFilter, wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: wanted.get(name) for name in ("status", "kind", "actor")} | form.moments()


def _pill(request: HttpRequest, count: int, words: str, url: str) -> HttpResponse:
    context = {"count": count, "words": words, "url": url}
    return render_page(request, "includes/pill.html", context, fragment="includes/pill.html")


@require_GET
@in_tenant(*GOVERNING)
def run(visit: Visit, run_id: str) -> HttpResponse:
    request = visit.request
    facts = run_facts(visit.principal, run_id)
    if facts is None:
        raise LogNotFound
    form = EntriesFilter(request.GET)
    wanted = form.wanted()
    view = request.GET.get("view")
    view = view if view in VIEWS else "timeline"
    after, before = _sequence(request, "after"), _sequence(request, "before")
    lines = (
        []
        if form.is_bad
        else entry_lines(
            visit.principal,
            run_id,
            kind=wanted.get("kind"),
            actor=wanted.get("actor"),
            after=after,
            before=before,
            limit=ENTRIES_A_PAGE + 1,
        )
    )
    has_more = len(lines) > ENTRIES_A_PAGE
    if has_more:
        lines = lines[1:] if before is not None else lines[:ENTRIES_A_PAGE]
    position: dict[str, str | None] = {"previous": None, "next": None}
    if lines and ((before is not None and has_more) or (before is None and after is not None)):
        position["previous"] = address(request, drop=("after",), before=lines[0].sequence)
    is_end = not wanted and bool(lines) and lines[-1].sequence >= facts.next_sequence - 1
    if lines and (before is not None or has_more) and not is_end:
        position["next"] = address(request, drop=("before",), after=lines[-1].sequence)
    context: dict[str, Any] = {
        "run": facts,
        "standing": facts.standing,
        "form": form,
        "chips": chips(request, form),
        "view": view,
        "tabs": [(one, address(request, view=one)) for one in VIEWS],
        "lines": lines,
        "rows": by_cause(lines) if view == "cause" else _with_gaps(lines),
        "names": names_of(visit.principal, (line.writer for line in lines)),
        "filter_query": address(request, drop=("after", "before", "view"))[len(request.path) :],
        "clear_url": address(request, drop=("kind", "actor", "after", "before")),
        "last_known": facts.next_sequence - 1,
        "covered": (known := covered(visit.principal, run_id)),
        "unsealed": facts.next_sequence - 1 - known.to,
        **position,
    }
    return render_page(request, "audit/run.html", context, fragment="audit/_entries.html")


def _sequence(request: HttpRequest, name: str) -> int | None:
    given = request.GET.get(name, "")
    return int(given) if given.isdecimal() and len(given) <= 18 else None


def _with_gaps(lines: list[EntryLine]) -> list[dict[str, Any]]:
    """Each line with the minutes of silence before it, where it was longer than one."""
    rows: list[dict[str, Any]] = []
    earlier: datetime | None = None
    for line in lines:
        # The table's owner can take a time away: shown as one that can't be written.
        at = datetime.fromisoformat((line.at or _NO_TIME).replace("Z", "+00:00"))
        silence = int((at - earlier).total_seconds()) if earlier else 0
        rows.append(
            {
                "line": line,
                "silence": silence if silence > 60 else 0,
                "minutes": silence // 60,
                "starts_day": earlier is None or at.date() != earlier.date(),
            }
        )
        earlier = at
    return rows


@require_GET
@in_tenant(*GOVERNING)
def newer_entries(visit: Visit, run_id: str) -> HttpResponse:
    """How many entries came since; a fragment for the pill, and without htmx the run itself."""
    request = visit.request
    check_run_is_readable(visit.principal, run_id)
    after = _sequence(request, "after")
    wanted = EntriesFilter(request.GET).wanted()
    page = visit.url("run", run_id)
    if not wants_fragment(request) or after is None:
        return HttpResponseRedirect(page)
    count = count_of_entries(
        visit.principal,
        run_id,
        kind=wanted.get("kind"),
        actor=wanted.get("actor"),
        after=after,
        most=1000,
    )
    words = ngettext("%(count)d new entry – show", "%(count)d new entries – show", count)
    return _pill(request, count, words % {"count": count}, _newest(visit, run_id, after, count))


def _newest(visit: Visit, run_id: str, after: int, count: int) -> str:
    """The part of the run that ends with its newest entry: what was there before stays in sight above what is new."""
    request, facts = visit.request, run_facts(visit.principal, run_id)
    end = facts.next_sequence if facts is not None else after + count + 1
    query = address(request, drop=("after",), before=end)[len(request.path) :]
    has_first = count < ENTRIES_A_PAGE and not EntriesFilter(request.GET).wanted()
    return visit.url("run", run_id) + query + (f"#e{after + 1}" if has_first else "")
