"""A form is sent once: of two sends of the same form, the second is led to where the first one led.

The key's row is written in the transaction of the effect, so a second send at the same moment waits for the first.
"""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpResponse, HttpResponseRedirect

from corrections.visit import Visit
from memory.ids import new_text_id

FIELD = "once"
_LENGTHS = range(16, 65)


def new_key() -> str:
    return new_text_id()


def led_before(visit: Visit) -> HttpResponse | None:
    """Where this form led when it was sent before; for what the first send took out of its sender's sight."""
    key = visit.request.POST.get(FIELD, "")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT led_to FROM page_form WHERE tenant_id = %(tenant)s::uuid AND sender = %(sender)s::text "
            "AND once_key = %(key)s::text AND led_to <> ''",
            {"tenant": visit.principal.tenant_id, "sender": visit.principal.writer, "key": key},
        )
        found = cursor.fetchone()
    return HttpResponseRedirect(found[0]) if found else None


def sent_once(visit: Visit, act: Callable[[], str]) -> HttpResponse:
    """Do it, unless this form was sent before; redirect to the address that `act` gives.

    Whatever `act` raises rolls the key back with everything else, so the form can be sent again.
    """
    key = visit.request.POST.get(FIELD, "")
    if len(key) not in _LENGTHS:
        return HttpResponseRedirect(act())
    named: dict[str, Any] = {
        "tenant": visit.principal.tenant_id,
        "sender": visit.principal.writer,
        "key": key,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO page_form (tenant_id, sender, once_key, led_to) "
            "VALUES (%(tenant)s::uuid, %(sender)s::text, %(key)s::text, '') ON CONFLICT DO NOTHING RETURNING 1",
            named,
        )
        is_first = cursor.fetchone() is not None
        if not is_first:
            cursor.execute(
                "SELECT led_to FROM page_form WHERE tenant_id = %(tenant)s::uuid AND sender = %(sender)s::text "
                "AND once_key = %(key)s::text",
                named,
            )
            return HttpResponseRedirect(cursor.fetchone()[0])
    led_to = act()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE page_form SET led_to = %(url)s::text WHERE tenant_id = %(tenant)s::uuid "
            "AND sender = %(sender)s::text AND once_key = %(key)s::text",
            {**named, "url": led_to},
        )
    return HttpResponseRedirect(led_to)
