"""Which refresh handlers a tenant has, by id.

`http-api` is built in, for every tenant; it reaches the hosts in the tenant's setting `refreshHosts`. Others come from installed
packages, by entry points of the group `kindmem.refresh_handlers`, and serve the tenants whose setting `refreshHandlers` names
them. An id in a fact is only ever looked up here: nothing that a fact says is imported or run.
"""

import functools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from uuid import UUID

from django.db import connection

from memory.fact_shape import Source
from memory.refresh.handler import Handler
from memory.refresh.http_api import http_api

GROUP = "kindmem.refresh_handlers"
BUILT_IN: Mapping[str, Handler] = {"http-api": http_api}

_lock = threading.Lock()
_registered: dict[str, Handler] = {}


@dataclass(frozen=True, slots=True)
class TenantHandlers:
    """What one tenant registered. `hosts` in lower case, as in an address; `handlers` by id, beside the built-in ones."""

    hosts: frozenset[str] = frozenset()
    handlers: frozenset[str] = frozenset()

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "TenantHandlers":
        return cls(
            frozenset(str(host).lower() for host in settings.get("refreshHosts", ())),
            frozenset(settings.get("refreshHandlers", ())),
        )

    def handler_of(self, source: Source) -> Handler | None:
        """The handler that looks after a source: the one it names, else the built-in one of its kind; None when there is none."""
        wanted = source.handler or source.kind
        if wanted in BUILT_IN:
            return BUILT_IN[wanted]
        if wanted not in self.handlers:
            return None
        with _lock:
            registered = _registered.get(wanted)
        if registered is not None:
            return registered
        found = _installed().get(wanted)
        return None if found is None else _loaded(found)


def tenant_handlers(tenant_id: UUID, *, to_change: bool = False) -> TenantHandlers:
    """What the tenant registered, in the running transaction; `to_change` locks it until commit."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT jsonb_build_object('refreshHosts', coalesce(settings -> 'refreshHosts', '[]'),"
            " 'refreshHandlers', coalesce(settings -> 'refreshHandlers', '[]'))::text"
            " FROM tenant WHERE id = %(tenant)s::uuid" + (" FOR UPDATE" if to_change else ""),
            {"tenant": tenant_id},
        )
        (text,) = cursor.fetchone()
    return TenantHandlers.of_settings(json.loads(text))


def is_offered(handler_id: str) -> bool:
    """Whether an installed package has a handler of this id."""
    with _lock:
        registered = handler_id in _registered
    return registered or handler_id in _installed()


@functools.cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@functools.cache
def _loaded(point: EntryPoint) -> Handler:
    handler: Handler = point.load()
    return handler


@contextmanager
def handler_registered(handler_id: str, handler: Handler) -> Iterator[None]:
    """Offer a handler for the length of a block, as an installed package would; a tenant still has to name it."""
    with _lock:
        _registered[handler_id] = handler
    try:
        yield
    finally:
        with _lock:
            del _registered[handler_id]
