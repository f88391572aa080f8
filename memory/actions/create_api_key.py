"""Make an API key. The token is returned once and kept nowhere.

Admins and owners make keys, and never one that may do more than the rules of its role allow; owners make admins' keys, as they
appoint admins; a key makes none that may do more than itself. The governance log says that there is a new key, by its prefix.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from memory import keys
from memory.access import ABILITIES, DEFAULT_ABILITIES, Principal
from memory.actions.append_log_entries import append_governance
from memory.admission import ID_MAX
from memory.erasure.progress import check_none_erases
from memory.errors import BadInput, PermissionDenied
from memory.ids import new_id
from memory.models import ApiKey
from memory.tenancy import tenant_context

ROLES = ("agent", "app", "admin", "auditor")
CONTAINERS = ("projects", "orgs", "users", "participants", "threads", "on_behalf_of")
MOST_DAYS = 366
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class NewKey:
    id: UUID
    token: str
    prefix: str
    expires_at: datetime


def create_api_key(
    *,
    principal: Principal,
    name: str,
    role: str,
    everything: bool = False,
    projects: Iterable[str] = (),
    orgs: Iterable[str] = (),
    users: Iterable[str] = (),
    participants: Iterable[str] = (),
    threads: Iterable[str] = (),
    on_behalf_of: Iterable[str] = (),
    abilities: Iterable[str] | None = None,
    expires_days: int = 90,
) -> NewKey:
    """A key with these containers and abilities (the role's defaults when None).

    Raises PermissionDenied, BadInput; ErasureInProgress for whom is being erased.
    """
    principal.needs_role("admin", "owner")
    if role == "admin" and principal.kind != "system" and principal.role != "owner":
        raise PermissionDenied(needs="the role owner, to make a key of an admin")
    if not _NAME.fullmatch(name):
        raise BadInput.at("name", "must be 1 to 64 of letters, digits, '.', '_' and '-'")
    if role not in ROLES:
        raise BadInput.at("role", "must be one of: " + ", ".join(ROLES))
    if not 1 <= expires_days <= MOST_DAYS:
        raise BadInput.at("expires_days", f"must be 1 to {MOST_DAYS}")
    may = sorted(DEFAULT_ABILITIES[role] if abilities is None else set(abilities))
    if not may:
        raise BadInput.at("may", "names no ability, so the key could do nothing")
    if unknown := set(may) - set(ABILITIES):
        raise BadInput.at("may", f"does not know {', '.join(sorted(unknown))}")
    if role == "auditor" and set(may) - {"read"}:
        raise BadInput.at("may", "an auditor's key only reads")
    if principal.kind == "key" and (more := set(may) - principal.abilities):
        raise PermissionDenied(needs=f"the ability '{min(more)}' itself, to give it to a key")
    containers = {
        "projects": projects,
        "orgs": orgs,
        "users": users,
        "participants": participants,
        "threads": threads,
        "on_behalf_of": on_behalf_of,
    }
    granted = {kind: sorted(set(ids)) for kind, ids in containers.items()}
    for kind, ids in granted.items():
        if any(not 1 <= len(one) <= ID_MAX or "\x00" in one for one in ids):
            raise BadInput.at(kind, f"ids have 1 to {ID_MAX} characters")
    return insert_key(
        principal,
        name=name,
        role=role,
        everything=everything,
        abilities=may,
        expires_days=expires_days,
        granted=granted,
    )


def insert_key(
    principal: Principal,
    *,
    name: str,
    role: str,
    everything: bool,
    abilities: list[str],
    expires_days: int,
    granted: dict[str, list[str]],
) -> NewKey:
    """The key's row and its entry; whoever calls has checked that it may be. Raises ErasureInProgress."""
    token, prefix = keys.new_token()
    version = keys.newest_pepper_version()
    expires_at = timezone.now() + timedelta(days=expires_days)
    with tenant_context(principal.tenant_id):
        check_none_erases(principal.tenant_id, [*granted["users"], *granted["participants"]])
        key = ApiKey.objects.create(
            tenant_id=principal.tenant_id,
            id=new_id(),
            prefix=prefix,
            digest=keys.digest(token, version),
            pepper_version=version,
            name=name,
            role=role,
            all_containers=everything,
            abilities=abilities,
            created_by=principal.writer,
            expires_at=expires_at,
            **granted,
        )
        append_governance(
            principal=principal, payload={"type": "key.created", "prefix": prefix, "role": role}
        )
    return NewKey(id=key.id, token=token, prefix=prefix, expires_at=expires_at)
