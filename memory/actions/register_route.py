"""A tenant's correction routes: register one, change one.

Admins only; the built-in seven can be reworded and nothing else.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import BadInput, RouteExists, RouteNotFound, constraint_errors
from memory.fetch_rules import is_loopback
from memory.records import clock
from memory.records.routes import BUILT_IN, Route, find_route

_TYPES = {"may_broaden": "bool", "needs_evidence": "bool", "is_configured": "bool"}
_CHANGEABLE = (
    "label",
    "description",
    "audience",
    "url_template",
    "may_broaden",
    "needs_evidence",
)


def register_route(*, principal: Principal, name: str, fields: Mapping[str, Any]) -> Route:
    """A new route of the tenant. Raises PermissionDenied, RouteExists, BadInput."""
    principal.needs_role("admin", "owner")
    if name in BUILT_IN or find_route(principal, name) is not None:
        raise RouteExists(name=name)
    return _write(principal, name, {"label": name, **fields}, "route.registered")


def change_route(*, principal: Principal, name: str, fields: Mapping[str, Any]) -> Route:
    """Change a route; one that nobody configured is configured by it.

    Raises PermissionDenied, RouteNotFound, BadInput.
    """
    principal.needs_role("admin", "owner")
    known = find_route(principal, name)
    if known is None:
        raise RouteNotFound
    if name in BUILT_IN and (fixed := sorted(set(fields) - {"label", "description"})):
        raise BadInput.at(f"/{fixed[0]}", "of a built-in route can't be changed")
    before = {one: getattr(known, one) for one in _CHANGEABLE}
    return _write(principal, name, {**before, **fields}, "route.changed")


def check_url_template(template: str) -> None:
    """An https page that is told the record's id, in its path or query. Raises BadInput."""
    try:
        parts = urlsplit(template)
        host = parts.hostname or ""
    except ValueError:
        raise BadInput.at("/url_template", "is not a URL") from None
    is_plain = template.isprintable() and not set(template) & {" ", "\\", "@"}
    if not is_plain or not host or "{record_id}" not in parts.path + "?" + parts.query:
        raise BadInput.at(
            "/url_template", "must be a URL that holds {record_id} in its path or query"
        )
    is_local = settings.KINDMEM_DEVELOPMENT and (host == "localhost" or is_loopback(host))
    if "{" in parts.netloc or not (
        parts.scheme == "https" or (parts.scheme == "http" and is_local)
    ):
        raise BadInput.at("/url_template", "must start with https:// and a host")


def _write(principal: Principal, name: str, fields: Mapping[str, Any], act: str) -> Route:
    if fields.get("url_template") is not None:
        check_url_template(fields["url_template"])
    columns = {**{one: fields[one] for one in _CHANGEABLE if one in fields}, "is_configured": True}
    at = clock.now()
    names = ", ".join(columns)
    values = ", ".join(f"%({one})s::{_TYPES.get(one, 'text')}" for one in columns)
    updates = ", ".join(f"{one} = excluded.{one}" for one in columns)
    with constraint_errors(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO correction_route (tenant_id, name, created_at, created_by, updated_at, updated_by, {names}) "
            f"VALUES (%(tenant)s::uuid, %(name)s::text, %(at)s::timestamptz, %(by)s::text, %(at)s::timestamptz, %(by)s::text, "
            f"{values}) ON CONFLICT ON CONSTRAINT correction_route_pkey DO UPDATE SET {updates}, "
            "updated_at = excluded.updated_at, updated_by = excluded.updated_by",
            {
                "tenant": principal.tenant_id,
                "name": name,
                "at": at,
                "by": principal.writer,
                **columns,
            },
        )
    append_governance(principal=principal, payload={"type": act, "route": name})
    written = find_route(principal, name)
    if written is None:
        raise RouteNotFound
    return written
