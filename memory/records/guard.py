"""Who may read and write a record: one rule, as a function and as SQL.

A record about a user: that person, keys granted the user, and keys on behalf of the project that its `project_id`
binding names. About a project: keys with it. About a client or an org: keys with that org. Admins and auditors read
all. Whoever reads may write, given the ability.
"""

from typing import Any

from memory.access import Principal, Scope
from memory.erasure.progress import check_none_erases_of
from memory.errors import PermissionDenied
from memory.records.bindings import Bindings


def may_read_record(
    principal: Principal, subject_type: str, subject_id: str, bindings: Bindings
) -> bool:
    has = principal.containers
    if has.everything:
        return True
    if subject_type == "user":
        return (
            subject_id == principal.subject
            or subject_id in has.users
            or bindings.get("project_id") in has.on_behalf_of
        )
    if subject_type == "project":
        return subject_id in has.projects or subject_id in has.on_behalf_of
    return subject_id in has.orgs


def record_guard(principal: Principal, alias: str = "r") -> tuple[str, dict[str, Any]]:
    """The rule as SQL over `memory_record`, and its named parameters."""
    has = principal.containers
    if has.everything:
        return "TRUE", {}
    a = alias
    rule = (
        f"(({a}.subject_type = 'user' AND {a}.subject_id = ANY(%(g_users)s::text[]))"
        f" OR ({a}.subject_type = 'project' AND {a}.subject_id = ANY(%(g_projects)s::text[]))"
        f" OR ({a}.subject_type IN ('client', 'org') AND {a}.subject_id = ANY(%(g_orgs)s::text[]))"
    )
    parameters: dict[str, Any] = {
        "g_users": sorted(has.users | ({principal.subject} if principal.subject else set())),
        "g_projects": sorted(has.projects | has.on_behalf_of),
        "g_orgs": sorted(has.orgs),
    }
    if has.on_behalf_of:
        rule += (
            f" OR ({a}.subject_type = 'user' AND jsonb_typeof({a}.bindings -> 'project_id') = 'string'"
            f" AND {a}.bindings ->> 'project_id' = ANY(%(g_behalf)s::text[]))"
        )
        parameters["g_behalf"] = sorted(has.on_behalf_of)
    return rule + ")", parameters


def check_record_write(
    principal: Principal, subject_type: str, subject_id: str, bindings: Bindings
) -> None:
    """Raises PermissionDenied; ErasureInProgress while whom it is about is being erased."""
    principal.needs("write")
    if principal.role == "auditor":
        raise PermissionDenied(needs="a role that writes")
    if not may_read_record(principal, subject_type, subject_id, bindings):
        raise PermissionDenied(needs=f"the {subject_type} that the record is about")
    check_none_erases_of(principal.tenant_id, subject_type, subject_id, bindings)


def replay_scope(
    principal: Principal, subject_type: str, subject_id: str, bindings: Bindings
) -> Scope:
    """The containers that a kept answer about this record is checked against when it is replayed."""
    if subject_type == "project":
        return {"projectId": subject_id}
    if subject_type in ("client", "org"):
        return {"orgId": subject_id}
    behalf = bindings.get("project_id")
    if subject_id not in principal.containers.users and behalf in principal.containers.on_behalf_of:
        return {"projectId": str(behalf)}
    return {"userId": subject_id}


def decides_for_people(principal: Principal) -> bool:
    """Whether its acts count by themselves: a signed-in person, an app key, or an admin.

    An agent's need a person's word.
    """
    return principal.speaks_for_people or principal.role in ("admin", "owner")
