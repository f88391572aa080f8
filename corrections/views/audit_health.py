"""Chain health: one cell a day, each a link to the runs that began then."""

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from corrections.htmx import render_page
from corrections.once import new_key
from corrections.queries.chain_health import Day, chain_health
from corrections.visit import GOVERNING, Visit, in_tenant
from memory.hashing import tag

WEEKS = 13
CELL_WIDTH, CELL_HEIGHT, GAP = 42, 26, 2


@require_GET
@in_tenant(*GOVERNING)
def health(visit: Visit) -> HttpResponse:
    today = timezone.localdate()
    # The newest week is at the top and ends with Sunday, so that weekdays stand below each other.
    found = chain_health(visit.principal, today=today, days=7 * (WEEKS - 1) + today.weekday() + 1)
    context = {
        "health": found,
        "root": tag(found.checkpoint.root_hash) if found.checkpoint else "",
        "cells": [_cell(visit, one, _row(one, today)) for one in found.days],
        "rows": [_line(visit, one) for one in found.days if one.runs],
        "weekdays": [
            {
                "name": formats.date_format(today - timedelta(days=today.weekday() - at), "D"),
                "x": at * (CELL_WIDTH + GAP) + CELL_WIDTH // 2,
            }
            for at in range(7)
        ],
        "width": 7 * (CELL_WIDTH + GAP) - GAP,
        "height": (WEEKS + 1) * (CELL_HEIGHT + GAP),
        "cell_width": CELL_WIDTH,
        "cell_height": CELL_HEIGHT,
        "once": new_key(),
    }
    return render_page(visit.request, "audit/health.html", context)


def _row(one: Day, today: Any) -> int:
    week = (today - timedelta(days=today.weekday())) - (one.day - timedelta(days=one.day.weekday()))
    return int(week.days // 7) + 1


def _state(one: Day) -> tuple[str, str]:
    """Tone and sign; the sign says it without colour."""
    if one.broken:
        return "bad", "✗"
    if one.unverified:
        return "plain", "?"
    return ("ok", "✓") if one.runs else ("", "")


def _cell(visit: Visit, one: Day, row: int) -> dict[str, Any]:
    tone, sign = _state(one)
    x, y = one.day.weekday() * (CELL_WIDTH + GAP), row * (CELL_HEIGHT + GAP)
    return {
        "tone": tone,
        "sign": sign,
        "x": x,
        "y": y,
        "text_x": x + CELL_WIDTH // 2,
        "text_y": y + CELL_HEIGHT // 2 + 5,
        "words": f"{formats.date_format(one.day)}: {_words(one)}",
        "url": _url(visit, one) if one.runs else None,
    }


def _words(one: Day) -> str:
    if not one.runs:
        return _("no run began")
    parts = [ngettext("%(n)d run", "%(n)d runs", one.runs) % {"n": one.runs}]
    if one.broken:
        parts.append(_("%(n)d broken") % {"n": one.broken})
    if one.unverified:
        parts.append(_("%(n)d not verified") % {"n": one.unverified})
    if one.grown:
        parts.append(_("%(n)d intact as far as verified, and longer since") % {"n": one.grown})
    if one.intact:
        parts.append(_("%(n)d intact") % {"n": one.intact})
    return ", ".join(parts)


def _url(visit: Visit, one: Day) -> str:
    day = one.day.isoformat()
    return f"{reverse('runs', args=[visit.slug])}?since={day}&until={day}"


def _line(visit: Visit, one: Day) -> dict[str, Any]:
    return {"day": one, "url": _url(visit, one), "words": formats.date_format(one.day)}
