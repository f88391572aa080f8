"""Every route of the API as the URLconf has it, with its method and declaration: what the tests that try them all walk.

A new route is found by itself. What has no declared operation must be in `PLAIN_ROUTES`, with the reason.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, URLResolver, get_resolver

from memory.api.operation import ApiView, Operation

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PLAIN_ROUTES = {
    "livez": "says that the process lives, to anybody",
    "readyz": "says whether it can serve, to anybody",
    "metrics": "counts, for the operator's Prometheus",
    "csp-reports": "takes what a browser reports of a page's policy, from anybody",
    "v1/openapi.json": "the description itself, the same for everybody",
    "v1/docs": "shows the description",
}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    """One path of the URLconf and the view behind it."""

    path: str
    view: Any

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.path))

    def url(self, **ids: str) -> str:
        """The path with each id percent-encoded as one piece."""
        return "/" + _PARAMETER.sub(lambda found: quote(ids[found[1]], safe=""), self.path)

    @property
    def operations(self) -> dict[str, Operation]:
        found = {method: getattr(self.view, method.lower(), None) for method in METHODS}
        return {
            method: handler.operation
            for method, handler in found.items()
            if hasattr(handler, "operation")
        }


@dataclass(frozen=True)
class Endpoint:
    """One declared operation."""

    route: Route
    method: str
    operation: Operation

    @property
    def id(self) -> str:
        return self.operation.id

    @property
    def takes_json(self) -> bool:
        return self.method not in ("GET", "DELETE")


def _walk(patterns: list[Any], before: str) -> Iterator[Route]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, before + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            callback = pattern.callback
            view = getattr(callback, "cls", None) or getattr(callback, "view_class", callback)
            yield Route(before + str(pattern.pattern), view)


def routes() -> list[Route]:
    return list(_walk(get_resolver().url_patterns, ""))


def api_routes() -> list[Route]:
    return [
        route
        for route in routes()
        if isinstance(route.view, type) and issubclass(route.view, ApiView)
    ]


def endpoints() -> list[Endpoint]:
    return [
        Endpoint(route, method, operation)
        for route in api_routes()
        for method, operation in route.operations.items()
    ]
