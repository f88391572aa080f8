"""Times on the account's own pages, which belong to no workspace, are shown in the zone in which the person reads elsewhere.

The zone that they chose in one of their workspaces; where they chose none, their first workspace's.
"""

import json
import zoneinfo
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from memory.api.authentication import principal_of_member
from memory.tenancy import tenant_context

ACCOUNT_PAGES = "/account/"
_LOOKED_AT = 10

_MEMBERSHIPS = "SELECT tenant_id, slug FROM memberships_of(%(user)s::int) LIMIT %(most)s::int"
_SETTINGS = (
    "SELECT settings FROM member WHERE tenant_id = %(tenant)s::uuid AND user_id = %(user)s::int"
)


class AccountZoneMiddleware:
    """After the middleware that says who is signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_page = request.method == "GET" and request.path.startswith(ACCOUNT_PAGES)
        if not is_page or not request.user.is_authenticated:
            return self.get_response(request)
        with timezone.override(zone_of(request.user.pk)):
            return self.get_response(request)


def zone_of(user_id: int) -> zoneinfo.ZoneInfo:
    """The person's zone; UTC for who belongs to no workspace."""
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERSHIPS, {"user": user_id, "most": _LOOKED_AT})
        places = cursor.fetchall()
    usual = None
    for tenant_id, slug in places:
        with tenant_context(tenant_id), connection.cursor() as cursor:
            cursor.execute(_SETTINGS, {"tenant": tenant_id, "user": user_id})
            row: Any = cursor.fetchone()
            usual = usual or principal_of_member(user_id, slug).time_zone
        chosen = json.loads(row[0] or "{}").get("timeZone") if row else None
        if chosen:
            return zoneinfo.ZoneInfo(chosen)
    return zoneinfo.ZoneInfo(usual or "UTC")
