"""What is remembered about me: the list, and one memory with everything about it."""

import json
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from corrections.acting import correctable_record
from corrections.charts import Part, stacked_bar
from corrections.forms import MemoryFilter
from corrections.htmx import render_page
from corrections.once import new_key
from corrections.paging import address, chips
from corrections.pretty import laid_out
from corrections.queries.my_memory import (
    MemoryFilters,
    my_memory,
    my_states,
    set_aside,
    surroundings,
)
from corrections.queries.names import names_of
from corrections.queries.standing import standing_of
from corrections.remembered import (
    LIVE_STATES,
    STATE_NAMES,
    key_words,
    remembered,
    state_badge,
    value_words,
)
from corrections.templatetags.shown import on_day
from corrections.visit import Visit, in_tenant
from corrections.words import DECISIONS
from memory.actions.switch_inferences import may_be_inferred_about
from memory.api.pagination import make_cursor, read_cursor
from memory.errors import BadInput, LogNotFound, RecordNotFound
from memory.log_entry import StoredEntry
from memory.queries.record_history import PastAct, record_history
from memory.queries.run_log import entry_by_id
from memory.queries.undoable import undo_refusals
from memory.records import clock
from memory.records.record import Record
from memory.records.routes import Route, routes_named

MEMORIES_A_PAGE = 30
QUOTE_MAX = 600


@require_GET
@in_tenant(about_self=True)
def memory_list(visit: Visit) -> HttpResponse:
    request = visit.request
    form = MemoryFilter(request.GET)
    wanted = form.wanted()
    filters = MemoryFilters(
        state=wanted.get("state"),
        words=wanted.get("q"),
        source_type=wanted.get("source_type"),
        agent=wanted.get("agent"),
        since=form.moments()["since"],
    )
    bound = {"page": "memory", **{name: str(value) for name, value in wanted.items()}}
    position = _position(visit, bound)
    found = (
        []
        if form.is_bad
        else my_memory(visit.principal, filters, after=position, limit=MEMORIES_A_PAGE + 1)
    )
    shown = found[:MEMORIES_A_PAGE]
    older = None
    if len(found) > MEMORIES_A_PAGE:
        last = shown[-1]
        cursor = make_cursor(
            visit.principal, "memory", bound, [last.recorded_at.isoformat(), last.id]
        )
        older = address(request, after=cursor)
    states = my_states(visit.principal)
    context = {
        "form": form,
        "chips": chips(request, form),
        "memories": [remembered(record) for record in shown],
        "older": older,
        "newest": address(request, drop=("after",)) if position else None,
        "clear_url": request.path,
        "total": sum(states.values()),
        "in_use": sum(states.get(state, 0) for state in LIVE_STATES),
        "bar": stacked_bar(_parts(request, states)),
        "here": address(request),
        "once": new_key(),
        "may_infer": may_be_inferred_about(
            visit.principal.tenant_id, visit.principal.subject or ""
        ),
    }
    return render_page(request, "me/memory_list.html", context, fragment="me/_memory_list.html")


def _position(visit: Visit, bound: dict[str, Any]) -> tuple[datetime, str] | None:
    try:
        given = read_cursor(
            visit.principal, "memory", bound, visit.request.GET.get("after") or None
        )
    except BadInput:
        return None  # the filter changed: start from the newest
    return (datetime.fromisoformat(given[0]), given[1]) if given else None


def _parts(request: HttpRequest, states: dict[str, int]) -> list[Part]:
    return [
        Part(
            label=str(state_badge(state).words),
            count=states.get(state, 0),
            tone=state_badge(state).tone or "plain",
            url=f"{request.path}?state={state}",
        )
        for state in STATE_NAMES
    ]


@require_GET
@in_tenant()
def memory_detail(visit: Visit, record_id: str) -> HttpResponse:
    try:
        record = correctable_record(visit, record_id)
    except RecordNotFound:
        return _set_aside(visit, record_id)
    shown = remembered(record)
    history = record_history(visit.principal, record_id)
    around = surroundings(visit.principal, record_id)
    quoted = quoted_entry(visit, record.evidence_ref)
    is_disputed = any(at == record.disputed_at for _said, at in around.statements)
    people = [*(act.actor for act in history), *(use.writer for use in around.uses)]
    context = {
        "memory": shown,
        "record": record,
        "standing": None if shown.is_live else standing_of(visit.principal, record.id),
        "uses": [(use, DECISIONS.get(use.decision, use.decision)) for use in around.uses],
        "statements": [said for said, _at in around.statements],
        "quoted": quoted,
        "quote": quote_of(quoted),
        "past": [past_act(act) for act in history],
        "names": names_of(visit.principal, people),
        "derived": [(one, key_words(key)) for one, key in around.derived],
        "parents": [
            (one, key_words(around.parents[one]) if one in around.parents else None)
            for one in record.derived_from
        ],
        "ladder": ladder(record),
        "routes": _routes(visit, record, is_disputed=is_disputed) if shown.is_live else [],
        "once": new_key(),
    }
    return render_page(visit.request, "me/memory_detail.html", context)


def _routes(visit: Visit, record: Record, *, is_disputed: bool) -> list[tuple[Route, str | None]]:
    """What the person can do, each way with its outside address where it has one."""
    return [
        (route, route.url(visit.slug, record.id) if route.url_template else None)
        for route in routes_named(visit.principal, [record.route]).values()
        if route.audience == "person"
        and (route.is_built_in or route.name == record.route)
        and not (route.name == "confirm" and record.confirmed_at is not None)
        and not (route.name == "dispute" and is_disputed)
    ]


def _set_aside(visit: Visit, record_id: str) -> HttpResponse:
    """What the reader said is not about them: that it is looked into, and the way back; nothing of what it says."""
    record, number = set_aside(visit.principal, record_id)
    refused = undo_refusals(visit.principal.tenant_id, [number], clock.now())
    context = {"memory": remembered(record), "number": number, "can_undo": not refused}
    return render_page(visit.request, "me/set_aside.html", context)


def quoted_entry(visit: Visit, entry_id: str) -> StoredEntry | None:
    """The entry that is the evidence, when it is one and the reader may see it."""
    try:
        return entry_by_id(visit.principal, entry_id)
    except LogNotFound:
        return None


def quote_of(entry: StoredEntry | None) -> str | None:
    """What a message said, or its payload as it is; nothing of entries whose payload went."""
    if entry is None or entry.payload_text is None:
        return None
    payload = json.loads(entry.payload_text)
    if isinstance(payload, dict):
        for name in ("text", "content", "message"):
            if isinstance(payload.get(name), str):
                return str(payload[name])[:QUOTE_MAX]
    return (
        payload[:QUOTE_MAX]
        if isinstance(payload, str)
        else laid_out(entry.payload_text)[:QUOTE_MAX]
    )


_ACTS = {
    "remembered": lambda: _("Remembered"),
    "observed": lambda: _("Seen again"),
    "corrected": lambda: _("Corrected"),
    "confirmed": lambda: _("Confirmed"),
    "forgotten": lambda: _("Forgotten"),
    "expired": lambda: _("Became out of date"),
    "superseded": lambda: _("Replaced"),
    "began": lambda: _("Its first day came"),
    "disputed": lambda: _("Disputed"),
    "withdrawn": lambda: _("Set aside"),
    "undone": lambda: _("Undone"),
}


def past_act(act: PastAct) -> dict[str, Any]:
    """One act of the history: in words, with the value before and after where they differ."""
    before, after = value_words(act.from_text), value_words(act.to_text)
    words = _ACTS.get(act.act)
    return {
        "act": act,
        "words": words() if words is not None else act.act.replace("-", " "),
        "before": before if before != after else None,
        "after": after,
        "is_diff": before is not None and before != after,
    }


def _held_words(record: Record) -> str:
    if not record.hold_count:
        return _("none")
    is_sealed = record.value_text is None and record.authority != "policy"
    return _("yes, a copy is kept sealed") if is_sealed else _("yes, as long as the hold lasts")


def ladder(record: Record) -> list[tuple[str, str, bool]]:
    """Why it is kept: each step of the ladder in order, what it says here, and which one decides."""
    is_gone = record.status == "deleted"
    is_held = record.hold_count > 0
    ends = record.valid_until
    steps = [
        (_("Legal hold"), _held_words(record), is_held),
        (
            _("Asked to be forgotten"),
            _("yes") if is_gone else _("no"),
            is_gone and not is_held,
        ),
        (
            _("Last day"),
            on_day(ends) if ends else _("none"),
            bool(ends) and not is_held and not is_gone,
        ),
    ]
    is_decided = any(decides for _name, _says, decides in steps)
    return [*steps, (_("Otherwise"), _("kept until it is corrected or forgotten"), not is_decided)]
