"""A form is sent once: of two sends of the same form, the second is led to where the first one led.

The key's row is written in the transaction of the effect, so a second send at the same moment waits for the first. The same form
sent again with another text is no second send: nothing is done, and its sender is shown what was kept and what they sent.
"""

import hmac
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from corrections.views.refused import kept_fields
from corrections.visit import AnswerInstead, Visit
from corrections.words import FIELD_LABELS
from memory.ids import new_text_id

FIELD = "once"
_LENGTHS = range(16, 65)
# Where the form was is no part of what it says.
_UNSAID = frozenset({FIELD, "csrfmiddlewaretoken", "back"})


def new_key() -> str:
    return new_text_id()


def led_before(visit: Visit) -> HttpResponse | None:
    """Where this form led when it was sent before; for what the first send took out of its sender's sight."""
    found = _sent_before(_named(visit))
    return HttpResponseRedirect(_led_to(visit, found)) if found and found[0] else None


def sent_once(visit: Visit, act: Callable[[], str]) -> HttpResponse:
    """Do it, unless this form was sent before; redirect to the address that `act` gives.

    Whatever `act` raises rolls the key back with everything else, so the form can be sent again. Raises AnswerInstead for a
    form that was sent before with another text.
    """
    named = _named(visit)
    if len(named["key"]) not in _LENGTHS:
        return HttpResponseRedirect(act())
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO page_form (tenant_id, sender, once_key, led_to, said) "
            "VALUES (%(tenant)s::uuid, %(sender)s::text, %(key)s::text, '', %(said)s::bytea) ON CONFLICT DO NOTHING RETURNING 1",
            named,
        )
        is_first = cursor.fetchone() is not None
    if not is_first:
        found = _sent_before(named)
        return HttpResponseRedirect(_led_to(visit, found) if found else visit.request.path)
    led_to = act()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE page_form SET led_to = %(url)s::text WHERE tenant_id = %(tenant)s::uuid "
            "AND sender = %(sender)s::text AND once_key = %(key)s::text",
            {**named, "url": led_to},
        )
    return HttpResponseRedirect(led_to)


def _named(visit: Visit) -> dict[str, Any]:
    return {
        "tenant": visit.principal.tenant_id,
        "sender": visit.principal.writer,
        "key": visit.request.POST.get(FIELD, ""),
        "said": _digest(visit),
    }


def _digest(visit: Visit) -> bytes:
    """What the form says, and where it was sent to: keyed, since it may be a person's own words."""
    said = sorted(
        [name, *map(str, values)]
        for name, values in visit.request.POST.lists()
        if name not in _UNSAID
    )
    text = json.dumps([visit.request.path, said])
    return hmac.new(settings.SECRET_KEY.encode(), b"page form:" + text.encode(), sha256).digest()


def _sent_before(named: dict[str, Any]) -> tuple[str, bool] | None:
    """Where the form led, and whether it said the same."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT led_to, said IS NULL OR said = %(said)s::bytea FROM page_form WHERE tenant_id = %(tenant)s::uuid "
            "AND sender = %(sender)s::text AND once_key = %(key)s::text",
            named,
        )
        found: tuple[str, bool] | None = cursor.fetchone()
    return found


def _led_to(visit: Visit, found: tuple[str, bool]) -> str:
    led_to, is_same = found
    if is_same:
        return led_to
    request = visit.request
    kept = [(name, value) for name, value in kept_fields(request) if name != FIELD]
    context = {
        "led_to": led_to,
        "kept": [*kept, (FIELD, new_key())],
        "typed": [(name, value) for name, value in kept if value and name in FIELD_LABELS],
        "send_to": request.get_full_path(),
    }
    raise AnswerInstead(render(request, "state/sent_already.html", context, status=409))
