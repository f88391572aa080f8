"""What a person gets for each act: the receipt, and the list of them."""

import json
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from corrections.htmx import render_page
from corrections.once import new_key
from corrections.paging import address
from corrections.queries.my_receipts import (
    ReceiptLine,
    my_receipt,
    my_receipts,
    outcome_of,
)
from corrections.queries.standing import live_now
from corrections.receipt_words import told_by, way_words, where_words
from corrections.refusal_words import undo_words
from corrections.remembered import key_words
from corrections.templatetags.lookups import label
from corrections.visit import Visit, in_tenant
from memory.errors import BadInput, DomainError
from memory.hashing import tag
from memory.queries.records import values_shown
from memory.queries.undoable import undo_refusals
from memory.records import clock
from memory.records.receipts import Receipt
from memory.records.routes import Route, routes_named

RECEIPTS_A_PAGE = 40


@require_GET
@in_tenant(about_self=True)
def receipt(visit: Visit, number: str) -> HttpResponse:
    return receipt_page(visit, number)


def receipt_page(visit: Visit, number: str, *, error: DomainError | None = None) -> HttpResponse:
    """The receipt; with an error, what could not be undone and why."""
    found, key = my_receipt(visit.principal, number)
    values = values_shown(visit.principal, [*found.before_ids[:1], *found.after_ids[:1]])
    outcome = outcome_of(visit.principal, found)
    ids = [*found.after_ids[:1], found.record_id]
    context = {
        "receipt": found,
        "key": key_words(key),
        "way": _way(found.route, routes_named(visit.principal, [found.route])),
        "live": ids[0] if outcome.is_in_use else live_now(visit.principal, *ids),
        "told": told_by(found, outcome, values),
        "entry_hash": tag(found.log_entry_hash),
        "is_forget": found.route == "forget",
        "error": undo_words(error) if error is not None else None,
        "once": new_key(),
        "is_kept_sealed": outcome.is_sealed,
        **_undoing(visit, found),
    }
    status = 200 if error is None else 409
    return render_page(visit.request, "me/receipt.html", context, status=status)


def _undoing(visit: Visit, found: Receipt) -> dict[str, Any]:
    """Whether it can be undone, as the undo itself decides, and why not."""
    tenant_id = visit.principal.tenant_id
    refusal = undo_refusals(tenant_id, [found.number], clock.now()).get(found.number)
    return {
        "can_undo": refusal is None,
        "is_over": refusal == "deadline",
        "closed": undo_words(refusal) if refusal in ("changed", "legal-hold") else None,
    }


@require_GET
@in_tenant(about_self=True)
def receipts(visit: Visit) -> HttpResponse:
    request = visit.request
    found = my_receipts(
        visit.principal, before=_position(request.GET.get("after")), limit=RECEIPTS_A_PAGE + 1
    )
    shown, older = found[:RECEIPTS_A_PAGE], None
    if len(found) > RECEIPTS_A_PAGE:
        last = shown[-1]
        older = address(request, after=f"{last.made_at.isoformat()}_{last.number}")
    routes = routes_named(visit.principal, [one.route for one in shown])
    refused = undo_refusals(visit.principal.tenant_id, [one.number for one in shown], clock.now())
    context = {
        "rows": [_row(one, routes, can_undo=one.number not in refused) for one in shown],
        "older": older,
        "newest": request.path if request.GET.get("after") else None,
    }
    return render_page(request, "me/receipts.html", context)


def _way(name: str, routes: dict[str, Route]) -> Any:
    route = routes.get(name)
    return label(route) if route else way_words(name)


def _row(one: ReceiptLine, routes: dict[str, Route], *, can_undo: bool) -> dict[str, Any]:
    scope = json.loads(one.scope_text)
    return {
        "line": one,
        "key": key_words(one.key),
        "route": _way(one.route, routes),
        "scope": where_words(one.route, one.after_ids, scope["level"], scope["bindings"]),
        "can_undo": can_undo,
    }


def _position(text: str | None) -> tuple[datetime, str] | None:
    if not text:
        return None
    at, _separator, number = text.rpartition("_")
    try:
        return datetime.fromisoformat(at), number
    except ValueError:
        raise BadInput.at("after", "is not a place in this list") from None
