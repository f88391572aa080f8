"""What a person gets for each act: the receipt, and the list of them."""

import json
from datetime import datetime

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from corrections.htmx import render_page
from corrections.once import new_key
from corrections.paging import address
from corrections.queries.my_receipts import (
    fell_with,
    is_kept_sealed,
    my_receipt,
    my_receipts,
)
from corrections.remembered import key_words, scope_words, value_words
from corrections.templatetags.lookups import label
from corrections.visit import Visit, in_tenant
from memory.errors import BadInput, DomainError
from memory.hashing import tag
from memory.queries.records import values_shown
from memory.records.routes import routes_named

RECEIPTS_A_PAGE = 40


@require_GET
@in_tenant(about_self=True)
def receipt(visit: Visit, number: str) -> HttpResponse:
    return receipt_page(visit, number)


def receipt_page(visit: Visit, number: str, *, error: DomainError | None = None) -> HttpResponse:
    """The receipt; with an error, what could not be undone and why."""
    found, key = my_receipt(visit.principal, number)
    ids = [*found.before_ids, *found.after_ids]
    values = values_shown(visit.principal, ids)
    before, scope = found.state_before, json.loads(found.scope_text)
    routes = routes_named(visit.principal, [found.route])
    now = timezone.now()
    context = {
        "receipt": found,
        "key": key_words(key),
        "route": routes.get(found.route),
        "before": value_words(values.get(found.before_ids[0])) if found.before_ids else None,
        "after": value_words(values.get(found.after_ids[0])) if found.after_ids else None,
        "scope_before": scope_words(before["level"], before["bindings"]),
        "scope": scope_words(scope["level"], scope["bindings"]),
        "entry_hash": tag(found.log_entry_hash),
        "is_forget": found.route == "forget",
        "error": error,
        "once": new_key(),
        "can_undo": found.undone_at is None
        and found.undo_until is not None
        and found.undo_until > now,
        "is_over": found.undo_until is not None and found.undo_until <= now,
        "others": max(0, len(found.before_ids) - 1),
        "is_kept_sealed": is_kept_sealed(visit.principal, found),
        "fell": fell_with(visit.principal, found),
    }
    status = 200 if error is None else 409
    return render_page(visit.request, "me/receipt.html", context, status=status)


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
    now = timezone.now()
    rows = []
    for one in shown:
        scope = json.loads(one.scope_text)
        route = routes.get(one.route)
        rows.append(
            {
                "line": one,
                "key": key_words(one.key),
                "route": label(route) if route else one.route,
                "scope": scope_words(scope["level"], scope["bindings"]),
                "can_undo": one.undone_at is None
                and one.undo_until is not None
                and one.undo_until > now,
            }
        )
    context = {
        "rows": rows,
        "older": older,
        "newest": request.path if request.GET.get("after") else None,
    }
    return render_page(request, "me/receipts.html", context)


def _position(text: str | None) -> tuple[datetime, str] | None:
    if not text:
        return None
    at, _separator, number = text.rpartition("_")
    try:
        return datetime.fromisoformat(at), number
    except ValueError:
        raise BadInput.at("after", "is not a place in this list") from None
