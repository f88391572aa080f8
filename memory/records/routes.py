"""The named ways to a correction: seven built-in ones, and those of the tenant.

A name that nobody knows is registered as unconfigured with the built-in correction page, so that every record's
person can open its route, and an admin sees it. Source: the product contract, I3 and "Built-in correction routes".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.path_segments import segment_of


@dataclass(frozen=True, slots=True)
class Route:
    """`url_template` None: the product's own page."""

    name: str
    label: str
    description: str
    audience: str
    url_template: str | None
    may_broaden: bool
    needs_evidence: bool
    is_configured: bool
    is_built_in: bool

    def wire(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "name": self.name,
            "label": self.label,
            "description": self.description,
            "audience": self.audience,
            "page": "built-in" if self.url_template is None else "external",
            "may_broaden": self.may_broaden,
            "needs_evidence": self.needs_evidence,
            "configured": self.is_configured,
            "built_in": self.is_built_in,
        }
        if self.url_template is not None:
            body["url_template"] = self.url_template
        return body

    def url(self, tenant_slug: str, record_id: str) -> str:
        """Where the record's person opens this route."""
        if self.url_template is not None:
            return self.url_template.replace("{record_id}", quote(record_id, safe=""))
        return (
            f"{settings.KINDMEM_BASE_URL}/t/{tenant_slug}/memory/{segment_of(record_id)}"
            f"/correct/{segment_of(self.name)}"
        )


def _built_in(name: str, label: str, description: str, *, may_broaden: bool = False) -> Route:
    return Route(
        name=name,
        label=label,
        description=description,
        audience="person",
        url_template=None,
        may_broaden=may_broaden,
        needs_evidence=False,
        is_configured=True,
        is_built_in=True,
    )


BUILT_IN: Mapping[str, Route] = {
    route.name: route
    for route in (
        _built_in(
            "confirm", "That's right", "Says that it is right, and may widen it.", may_broaden=True
        ),
        _built_in(
            "fix-value",
            "Fix what it says",
            "Puts another value in its place: in this case only, unless widened.",
            may_broaden=True,
        ),
        _built_in("out-of-date", "It used to be true", "Ends it as of the day before."),
        _built_in(
            "wrong-person",
            "Not about me",
            "Withdraws it from all use at once; an admin looks into it.",
        ),
        _built_in(
            "dispute", "I disagree", "Attaches a statement; agents ask until somebody decides."
        ),
        _built_in("forget", "Forget this", "Stops its use and erases it."),
        _built_in(
            "never-infer",
            "Don't guess this about me",
            "Refuses every later guess of this kind about the person.",
        ),
    )
}


def _route(row: Sequence[Any]) -> Route:
    name, label, description, audience, url_template, may_broaden, needs_evidence, configured = row
    return Route(
        name=name,
        label=label,
        description=description,
        audience=audience,
        url_template=url_template,
        may_broaden=may_broaden,
        needs_evidence=needs_evidence,
        is_configured=configured,
        is_built_in=name in BUILT_IN,
    )


_SELECT = (
    "SELECT name, label, description, audience, url_template, may_broaden, needs_evidence, is_configured"
    " FROM correction_route"
)


def routes_named(principal: Principal, names: Iterable[str] = ()) -> dict[str, Route]:
    """Those of these routes that the tenant knows, and all built-in ones, in the tenant's wording; by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_SELECT} WHERE tenant_id = %s::uuid AND name = ANY (%s::text[]) ORDER BY name",
            [principal.tenant_id, sorted({*BUILT_IN, *names})],
        )
        known = {row[0]: _route(row) for row in cursor.fetchall()}
    return {**BUILT_IN, **known}


def own_routes(
    principal: Principal, *, after: tuple[bool, str] | None = None, limit: int
) -> list[Route]:
    """At most `limit` of the routes that are not built in: those to be configured first, then by name.

    after: whether the last one of the page before is configured, and its name.
    """
    place = "" if after is None else 'AND (is_configured, name COLLATE "C") > (%s::bool, %s::text)'
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_SELECT} WHERE tenant_id = %s::uuid AND name <> ALL (%s::text[]) {place} "
            'ORDER BY is_configured, name COLLATE "C" LIMIT %s::int',
            [principal.tenant_id, sorted(BUILT_IN), *(after or ()), limit],
        )
        return [_route(row) for row in cursor.fetchall()]


def list_routes(principal: Principal, *, after: str | None = None, limit: int) -> list[Route]:
    """At most `limit` routes by name, built-in ones among them, after that of a name."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'{_SELECT} WHERE tenant_id = %s::uuid AND name COLLATE "C" > %s::text '
            'ORDER BY name COLLATE "C" LIMIT %s::int',
            [principal.tenant_id, after or "", limit],
        )
        own = {row[0]: _route(row) for row in cursor.fetchall()}
    # What was not read of the tenant's own comes after `limit` others, so no wording of theirs is missed here.
    built_in = {name: route for name, route in BUILT_IN.items() if name > (after or "")}
    merged = {**built_in, **own}
    return [merged[name] for name in sorted(merged)][:limit]


def find_route(principal: Principal, name: str) -> Route | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_SELECT} WHERE tenant_id = %s::uuid AND name = %s::text",
            [principal.tenant_id, name],
        )
        row = cursor.fetchone()
    return _route(row) if row else BUILT_IN.get(name)


def page_route(name: str) -> Route:
    """A route by its name alone, where the tenant's own wording and template don't matter."""
    return BUILT_IN.get(name) or Route(
        name=name,
        label=name,
        description="",
        audience="person",
        url_template=None,
        may_broaden=True,
        needs_evidence=False,
        is_configured=False,
        is_built_in=False,
    )


def register_unconfigured(principal: Principal, name: str, at: datetime) -> None:
    """Keep a name that a record uses and nobody configured."""
    if name in BUILT_IN:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO correction_route "
            "(tenant_id, name, label, is_configured, created_at, created_by, updated_at, updated_by) "
            "VALUES (%(tenant)s::uuid, %(name)s::text, %(name)s::text, false, %(at)s::timestamptz, %(by)s::text, "
            "%(at)s::timestamptz, %(by)s::text) ON CONFLICT ON CONSTRAINT correction_route_pkey DO NOTHING",
            {
                "tenant": principal.tenant_id,
                "name": name,
                "at": at,
                "by": principal.writer,
            },
        )


def correction_url(principal: Principal, record_id: str, name: str) -> str:
    """Where a record's person opens its correction route. An admin's route leads them to the product's own page."""
    route = find_route(principal, name)
    if route is None or route.audience != "person":
        route = page_route(name)
    return route.url(principal.tenant_slug, record_id)
