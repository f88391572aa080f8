"""Which sources a tenant's cached views may be refreshed from: register hosts and handlers, or take them away. Admins only.

A host is one that the built-in handler may ask; a handler is one that an installed package offers. What is registered already, or
is not there to take away, is no error: the same call again changes nothing.
"""

from collections.abc import Collection

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.canonical import canonical
from memory.errors import BadInput
from memory.fetch_rules import FetchRefused, parse_target
from memory.refresh.registry import BUILT_IN, TenantHandlers, is_offered, tenant_handlers

MOST_REGISTERED = 200

_SET = """
UPDATE tenant SET settings = settings || %(said)s::text::jsonb WHERE id = %(tenant)s::uuid
"""


def register_refresh(
    *,
    principal: Principal,
    add_hosts: Collection[str] = (),
    add_handlers: Collection[str] = (),
    remove_hosts: Collection[str] = (),
    remove_handlers: Collection[str] = (),
) -> TenantHandlers:
    """What is registered then. Raises PermissionDenied, BadInput."""
    principal.needs_role("admin", "owner")
    for host in add_hosts:
        _check_host(host)
    for handler in add_handlers:
        if handler in BUILT_IN:
            raise BadInput.at("handler", f"{handler} is built in; register hosts for it")
        if not is_offered(handler):
            raise BadInput.at("handler", f"no installed package offers {handler}")
    before = tenant_handlers(principal.tenant_id, to_change=True)
    now = TenantHandlers(
        (before.hosts | _lower(add_hosts)) - _lower(remove_hosts),
        (before.handlers | set(add_handlers)) - set(remove_handlers),
    )
    if max(len(now.hosts), len(now.handlers)) > MOST_REGISTERED:
        raise BadInput.at("host", f"a tenant has at most {MOST_REGISTERED} hosts and handlers")
    if now == before:
        return now
    said = {"refreshHosts": sorted(now.hosts), "refreshHandlers": sorted(now.handlers)}
    with connection.cursor() as cursor:
        cursor.execute(_SET, {"tenant": principal.tenant_id, "said": canonical(said)})
    append_governance(
        principal=principal,
        payload={
            "type": "refresh-sources.registered",
            "hosts": len(now.hosts),
            "handlers": sorted(now.handlers),
        },
    )
    return now


def _lower(hosts: Collection[str]) -> frozenset[str]:
    return frozenset(host.lower() for host in hosts)


def _check_host(host: str) -> None:
    try:
        is_plain = (
            parse_target(
                f"https://{host.lower()}/", allow_loopback=settings.KINDMEM_DEVELOPMENT
            ).host
            == host.lower()
        )
    except FetchRefused as refused:
        raise BadInput.at("host", f"must be a public host ({refused.reason})") from None
    if not is_plain:
        raise BadInput.at("host", "must be a name alone, in ASCII: no scheme, port or path")
