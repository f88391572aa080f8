"""Sweeps and what came of them, a dry run on demand, and the switch that stops all sweeping."""

import json
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from corrections.actions.switch_sweeping import switch_sweeping
from corrections.htmx import render_page
from corrections.once import new_key, sent_once
from corrections.paging import address
from corrections.proof import must_be_proved
from corrections.queries.names import names_of
from corrections.retention_words import rule_words, sweep_badge
from corrections.views.admin_holds import position
from corrections.visit import APPOINTING, GOVERNING, Visit, in_tenant
from memory.actions.set_retention import retention_settings
from memory.actions.sweep_retention import sweep_retention
from memory.api.pagination import make_cursor
from memory.queries.sweeps import PastSweep, evidence_of, find_sweep, past_sweeps

SWEEPS_A_PAGE = 30
EVIDENCE_A_PAGE = 50
TYPES_SHOWN = 50


@require_GET
@in_tenant(*GOVERNING)
def sweeps(visit: Visit) -> HttpResponse:
    request, tenant_id = visit.request, visit.principal.tenant_id
    after = position(visit, "sweeps", {})
    found = past_sweeps(
        tenant_id, after=(after[0], after[1]) if after else None, limit=SWEEPS_A_PAGE + 1
    )
    shown, older = found[:SWEEPS_A_PAGE], None
    if len(found) > SWEEPS_A_PAGE:
        last = shown[-1]
        older = address(
            request, after=make_cursor(visit.principal, "sweeps", {}, [last.started_at, last.id])
        )
    context = {
        "rows": [{"sweep": one, "badge": sweep_badge(one)} for one in shown],
        "names": _names(visit, *(one.started_by for one in shown)),
        "is_off": retention_settings(tenant_id).sweep_is_off,
        "older": older,
        "newest": request.path if after else None,
        "once": new_key(),
        "may_act": visit.may(*APPOINTING),
    }
    return render_page(request, "govern/sweeps.html", context)


def _names(visit: Visit, *writers: str) -> dict[str, str]:
    return {"service:sweeper": _("the worker"), **names_of(visit.principal, writers)}


@require_GET
@in_tenant(*GOVERNING)
def sweep(visit: Visit, sweep_id: UUID) -> HttpResponse:
    request, tenant_id = visit.request, visit.principal.tenant_id
    found = find_sweep(tenant_id, sweep_id)
    bound = {"sweep": str(sweep_id)}
    after = position(visit, "evidence", bound)
    rows = evidence_of(
        tenant_id, sweep_id, after=after[0] if after else None, limit=EVIDENCE_A_PAGE + 1
    )
    shown, older = rows[:EVIDENCE_A_PAGE], None
    if len(rows) > EVIDENCE_A_PAGE:
        cursor = make_cursor(visit.principal, "evidence", bound, [shown[-1].fact_id])
        older = address(request, after=cursor)
    context = {
        "sweep": found,
        "badge": sweep_badge(found),
        "names": _names(visit, found.started_by),
        "rows": [(one, rule_words(one.rule), _hex(one.digest)) for one in shown],
        "older": older,
        "newest": address(request, drop=("after",)) if after else None,
        **_counts(found),
    }
    return render_page(request, "govern/sweep.html", context)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else bytes(digest).hex()


def _counts(found: PastSweep) -> dict[str, Any]:
    """By type and by rule, most first."""
    types = _most_first(found.types_text)
    return {
        "types": types[:TYPES_SHOWN],
        "types_left_out": max(0, len(types) - TYPES_SHOWN),
        "rules": [(rule_words(rule), count) for rule, count in _most_first(found.counts_text)],
    }


def _most_first(text: str) -> list[tuple[str, int]]:
    counts: dict[str, int] = json.loads(text)
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


@require_POST
@in_tenant(*APPOINTING)
def dry_run(visit: Visit) -> HttpResponse:
    """Ask what a sweep would take now, and take nothing."""

    def act() -> str:
        result = sweep_retention(principal=visit.principal, dry_run=True)
        return visit.url("sweep", result.id)

    return sent_once(visit, act)


@require_POST
@in_tenant(*APPOINTING)
def switch(visit: Visit) -> HttpResponse:
    """Stopping needs nothing more; going on destroys again, so it asks who it is."""
    is_off = visit.request.POST.get("sweeping") == "off"
    if not is_off:
        must_be_proved(visit)
    if switch_sweeping(principal=visit.principal, is_off=is_off):
        said = _("No sweep destroys anything now.") if is_off else _("Sweeps go on.")
        messages.success(visit.request, said)
    return HttpResponseRedirect(visit.url("sweeps"))
