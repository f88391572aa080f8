"""Who calls, what containers they have, and what they may read and write.

The read guard is one rule said twice: `may_read` as a plain function, `read_guard` as the SQL that every query carries before
its limit; a property test holds them equal. Containers: project; org (only when no project is named); user; participant; thread.
A scope that names none is tenant-wide. Session is not a container. See docs/architecture.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from memory.errors import PermissionDenied, ScopeMismatch

LogIds = Literal["plain", "pseudonyms", "were-pseudonyms"]
"""How a tenant's log names people; see `memory/log_pseudonyms.py`."""
Role = Literal["agent", "app", "admin", "auditor", "owner", "person"]
Ability = Literal["read", "write", "append", "emit", "tenant-wide"]

ABILITIES: tuple[Ability, ...] = ("read", "write", "append", "emit", "tenant-wide")
DEFAULT_ABILITIES: dict[str, frozenset[str]] = {
    "agent": frozenset({"read", "write", "append", "emit"}),
    "app": frozenset({"read", "write", "append", "emit"}),
    "admin": frozenset({"read", "write", "append", "emit"}),
    "owner": frozenset({"read", "write", "append", "emit"}),
    "auditor": frozenset({"read"}),
    "person": frozenset({"read", "write"}),
}
READS_ALL = frozenset({"admin", "auditor", "owner"})

SCOPE_KEYS = (
    "tenantId",
    "userId",
    "orgId",
    "projectId",
    "threadId",
    "sessionId",
    "participantId",
)
"""The keys a scope may name. Any other is `unknown-field`: a mistyped key would widen the scope."""

Scope = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Containers:
    """What a reader has. `everything` is for admins, auditors and keys granted all."""

    everything: bool = False
    projects: frozenset[str] = frozenset()
    orgs: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    participants: frozenset[str] = frozenset()
    threads: frozenset[str] = frozenset()
    on_behalf_of: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Quota:
    """How much a key may write in a window; None: no bound."""

    writes: int | None = None
    bytes: int | None = None
    subjects: int | None = None
    window_seconds: int = 3600

    @property
    def bounds_something(self) -> bool:
        return (self.writes, self.bytes, self.subjects) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller, within one tenant.

    kind `key`: an API key; `member`: a signed-in person; `link`: a person on a page link; `system`: the server itself.
    id: the key's prefix, the user's id, or the subject. subject: the person that a member or link is.
    """

    tenant_id: UUID
    tenant_slug: str
    kind: Literal["key", "member", "link", "system"]
    role: Role
    id: str
    name: str
    abilities: frozenset[str]
    containers: Containers = field(default_factory=Containers)
    subject: str | None = None
    time_zone: str = "UTC"
    search_language: str = "english"
    hash_version: int = 1
    quota: Quota | None = None
    log_ids: LogIds = "plain"

    @property
    def writer(self) -> str:
        """How the caller is named in what it writes: `service:<key prefix>` or `user:<id>`."""
        return f"service:{self.id}" if self.kind in ("key", "system") else f"user:{self.id}"

    @property
    def is_agent(self) -> bool:
        return self.role == "agent"

    @property
    def speaks_for_people(self) -> bool:
        """Whether its acts are a person's word: a signed-in person or an app key."""
        return self.kind in ("member", "link") or self.role == "app"

    def needs(self, ability: Ability) -> None:
        """Raise PermissionDenied unless the caller has the ability."""
        if ability not in self.abilities:
            raise PermissionDenied(needs=f"the ability '{ability}'")

    def needs_role(self, *roles: str) -> None:
        """Raise PermissionDenied unless the caller has one of the roles."""
        if self.role not in roles:
            raise PermissionDenied(needs=f"the role {' or '.join(roles)}")


def system_principal(
    tenant_id: UUID,
    slug: str,
    *,
    id: str = "operator",
    time_zone: str = "UTC",
    search_language: str = "english",
    hash_version: int = 1,
    log_ids: LogIds = "plain",
) -> Principal:
    """The server itself, acting for whoever runs it: an admin with every container and ability of one tenant."""
    return Principal(
        tenant_id=tenant_id,
        tenant_slug=slug,
        kind="system",
        role="admin",
        id=id,
        name=id,
        abilities=frozenset(ABILITIES),
        containers=Containers(everything=True),
        time_zone=time_zone,
        search_language=search_language,
        hash_version=hash_version,
        log_ids=log_ids,
    )


def may_read(principal: Principal, scope: Scope) -> bool:
    """Whether each container that the scope names is one the caller has."""
    has = principal.containers
    if has.everything:
        return True
    project = scope.get("projectId")
    participant = scope.get("participantId")
    if principal.subject is not None and participant == principal.subject:
        return scope.get("userId") in (None, principal.subject)
    behalf = project is not None and project in has.on_behalf_of
    org, user, thread = scope.get("orgId"), scope.get("userId"), scope.get("threadId")
    return (
        (project is None or project in has.projects or behalf)
        and (project is not None or org is None or org in has.orgs)
        and (user is None or user in has.users)
        and (participant is None or participant in has.participants or behalf)
        and (thread is None or thread in has.threads or behalf)
    )


def read_guard(principal: Principal, alias: str) -> tuple[str, dict[str, Any]]:
    """The read rule as SQL over columns user_id … participant_id of `alias`, and its named parameters."""
    has = principal.containers
    if has.everything:
        return "TRUE", {}
    a = alias
    rule = (
        f"(({a}.project_id IS NULL OR {a}.project_id = ANY(%(g_projects)s::text[]))"
        f" AND ({a}.project_id IS NOT NULL OR {a}.org_id IS NULL OR {a}.org_id = ANY(%(g_orgs)s::text[]))"
        f" AND ({a}.user_id IS NULL OR {a}.user_id = ANY(%(g_users)s::text[]))"
        f" AND ({a}.participant_id IS NULL OR {a}.participant_id = ANY(%(g_participants)s::text[])"
        f" OR {a}.project_id = ANY(%(g_behalf)s::text[]))"
        f" AND ({a}.thread_id IS NULL OR {a}.thread_id = ANY(%(g_threads)s::text[])"
        f" OR {a}.project_id = ANY(%(g_behalf)s::text[])))"
    )
    parameters: dict[str, Any] = {
        "g_projects": sorted(has.projects | has.on_behalf_of),
        "g_orgs": sorted(has.orgs),
        "g_users": sorted(has.users),
        "g_participants": sorted(has.participants),
        "g_threads": sorted(has.threads),
        "g_behalf": sorted(has.on_behalf_of),
    }
    if principal.subject is not None:
        rule = (
            f"({rule} OR ({a}.participant_id = ANY(%(g_subject)s::text[])"
            f" AND ({a}.user_id IS NULL OR {a}.user_id = ANY(%(g_subject)s::text[]))))"
        )
        parameters["g_subject"] = [principal.subject]
    return rule, parameters


def holds_containers(principal: Principal, scope: Scope) -> bool:
    """Whether the caller has every container that the scope names, the org of a project included."""
    has = principal.containers
    if has.everything:
        return True
    project = scope.get("projectId")
    behalf = project is not None and project in has.on_behalf_of
    org, user = scope.get("orgId"), scope.get("userId")
    participant, thread = scope.get("participantId"), scope.get("threadId")
    return (
        (project is None or project in has.projects or behalf)
        and (org is None or org in has.orgs)
        and (user is None or user in has.users)
        and (participant is None or participant in has.participants or behalf)
        and (thread is None or thread in has.threads or behalf)
    )


def names_no_container(scope: Scope) -> bool:
    """Whether the scope is tenant-wide; a session alone is no container."""
    return not any(
        scope.get(key) for key in ("userId", "orgId", "projectId", "threadId", "participantId")
    )


def check_write(principal: Principal, scope: Scope) -> None:
    """The write guard. Raises PermissionDenied."""
    principal.needs("write")
    if names_no_container(scope):
        principal.needs("tenant-wide")
    elif not holds_containers(principal, scope):
        raise PermissionDenied(needs="every container that the scope names")


def check_append(principal: Principal, scope: Scope) -> None:
    """Appending needs the ability and every container that the entry's scope names. Raises PermissionDenied."""
    principal.needs("append")
    if not holds_containers(principal, scope):
        raise PermissionDenied(needs="every container that the scope names")


def own_scope(principal: Principal, scope: Scope | None) -> dict[str, str]:
    """The scope with the caller's tenant in it. Raises ScopeMismatch for another tenant's."""
    given = dict(scope or {})
    if given.setdefault("tenantId", principal.tenant_slug) != principal.tenant_slug:
        raise ScopeMismatch
    return given
