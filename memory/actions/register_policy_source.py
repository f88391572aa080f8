"""Where policy values may come from: register a source, change one. Admins only."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import (
    BadInput,
    PolicySourceExists,
    PolicySourceNotFound,
    constraint_errors,
)
from memory.fetch_rules import FetchRefused, parse_target
from memory.ids import new_id
from memory.policy_sources.sources import MOST_SOURCES, PolicySource, find_sources, is_match
from memory.records import clock


def register_policy_source(
    *, principal: Principal, match: str, fetch_url: str, pointer: str = ""
) -> PolicySource:
    """A new source. Raises PermissionDenied, BadInput, PolicySourceExists."""
    principal.needs_role("admin", "owner")
    known = find_sources(principal.tenant_id)
    if len(known) >= MOST_SOURCES:
        raise BadInput.at("/match", f"a tenant has at most {MOST_SOURCES} policy sources")
    if any(one.match == match for one in known):
        raise PolicySourceExists
    source = PolicySource(new_id(), match, fetch_url, pointer, True)
    return _write(principal, source, "policy-source.registered")


def change_policy_source(
    *, principal: Principal, source_id: str, fields: Mapping[str, Any]
) -> PolicySource:
    """Change a source, or switch it off.

    Raises PermissionDenied, PolicySourceNotFound, BadInput, PolicySourceExists.
    """
    principal.needs_role("admin", "owner")
    known = {str(one.id): one for one in find_sources(principal.tenant_id)}
    before = known.get(source_id)
    if before is None:
        raise PolicySourceNotFound
    source = PolicySource(
        id=before.id,
        match=fields.get("match", before.match),
        fetch_url=fields.get("fetch_url", before.fetch_url),
        pointer=fields.get("pointer", before.pointer),
        is_enabled=fields.get("enabled", before.is_enabled),
    )
    if any(one.match == source.match and one.id != source.id for one in known.values()):
        raise PolicySourceExists
    return _write(principal, source, "policy-source.changed")


def _write(principal: Principal, source: PolicySource, act: str) -> PolicySource:
    if not is_match(source.match, allow_loopback=settings.KINDMEM_DEVELOPMENT):
        raise BadInput.at("/match", "must be an https URI without user info, query or fragment")
    try:
        parse_target(source.fetch_url, allow_loopback=settings.KINDMEM_DEVELOPMENT)
    except FetchRefused as refused:
        raise BadInput.at(
            "/fetch_url", f"must be an https URL of a public host ({refused.reason})"
        ) from None
    if source.pointer and not source.pointer.startswith("/"):
        raise BadInput.at("/pointer", "must be a JSON Pointer, such as /limits/meal")
    with constraint_errors(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO policy_source "
            "(tenant_id, id, match, fetch_url, pointer, is_enabled, created_at, created_by, updated_at, updated_by) "
            "VALUES (%(tenant)s::uuid, %(id)s::uuid, %(match)s::text, %(fetch_url)s::text, %(pointer)s::text, "
            "%(enabled)s::bool, %(at)s::timestamptz, %(by)s::text, %(at)s::timestamptz, %(by)s::text) "
            "ON CONFLICT ON CONSTRAINT policy_source_pkey DO UPDATE SET match = excluded.match, "
            "fetch_url = excluded.fetch_url, pointer = excluded.pointer, is_enabled = excluded.is_enabled, "
            "updated_at = excluded.updated_at, updated_by = excluded.updated_by",
            {
                "tenant": principal.tenant_id,
                "id": source.id,
                "match": source.match,
                "fetch_url": source.fetch_url,
                "pointer": source.pointer,
                "enabled": source.is_enabled,
                "at": clock.now(),
                "by": principal.writer,
            },
        )
    append_governance(principal=principal, payload={"type": act, "policySourceId": str(source.id)})
    return source
