"""Give a member another role, or say which person of the memory they are.

Owners appoint owners and admins, and only they take such a role away. Nobody raises their own role or says whose memory is
theirs; who steps down may. The last owner stays. A new role counts from now: with it the cooling-off of hold releases begins.
"""

from typing import Any
from uuid import UUID

from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.create_member import check_may_appoint, check_subject
from memory.erasure.progress import check_none_erases
from memory.errors import BadInput, MemberNotFound, PermissionDenied, constraint_errors
from memory.models import Member
from memory.queries.members import MemberView, find_member

RANKS = {"person": 0, "auditor": 1, "admin": 2, "owner": 3}


def change_role(
    *, principal: Principal, member_id: UUID | str, role: str, subject: str | None = None
) -> MemberView:
    """The member with this role and subject; nothing is logged when both are theirs already.

    Raises PermissionDenied, BadInput, MemberNotFound, ErasureInProgress; MemberKeepsAnOwner for the last owner.
    """
    check_may_appoint(principal, role)
    check_subject(role, subject)
    member = find_member(principal.tenant_id, member_id)
    rows = Member.objects.filter(tenant_id=principal.tenant_id, id=member.id)
    locked = rows.select_for_update().first()
    if locked is None or locked.left_at is not None:
        raise MemberNotFound
    check_may_move(principal, user_id=locked.user_id, role=locked.role)
    if is_self(principal, locked.user_id):
        if RANKS[role] > RANKS[locked.role]:
            raise PermissionDenied(needs="another owner: nobody raises their own role")
        if subject != locked.subject_id:
            raise PermissionDenied(needs="another admin: nobody says whose memory is theirs")
    if (locked.role, locked.subject_id) == (role, subject):
        return member
    check_none_erases(principal.tenant_id, [subject])
    changed: dict[str, Any] = {"subject_id": subject}
    if role != locked.role:
        changed |= {
            "role": role,
            "role_granted_at": timezone.now(),
            "role_granted_by": principal.writer,
        }
    with constraint_errors(
        member_subject_is_one_person=BadInput.at("subject", "is another member's")
    ):
        rows.update(**changed)
    append_governance(
        principal=principal,
        payload={
            "type": "member.role-changed",
            "memberId": str(member.id),
            "beforeRole": locked.role,
            "role": role,
            "subjectChanged": subject != locked.subject_id,
        },
    )
    return find_member(principal.tenant_id, member.id)


def is_self(principal: Principal, user_id: int) -> bool:
    return principal.kind == "member" and principal.id == str(user_id)


def check_may_move(principal: Principal, *, user_id: int, role: str) -> None:
    """Raises PermissionDenied unless the caller may change or end what this member is: owners may, admins below admins."""
    principal.needs_role("admin", "owner")
    if principal.kind == "system" or principal.role == "owner" or is_self(principal, user_id):
        return
    if role in ("owner", "admin"):
        raise PermissionDenied(needs="the role owner, to change owners and admins")
