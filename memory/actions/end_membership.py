"""End a membership: from the next request on the person is a stranger here, whatever sessions they have open.

Every request looks the membership up, so there is nothing to wait for. What they did keeps their name; the account stays, because
it may serve other tenants. The last owner stays.
"""

from uuid import UUID

from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.change_role import check_may_move
from memory.errors import MemberNotFound, constraint_errors
from memory.models import Member
from memory.queries.members import MemberView, find_member


def end_membership(*, principal: Principal, member_id: UUID | str) -> MemberView:
    """The member, ended now or before. Raises PermissionDenied, MemberNotFound; MemberKeepsAnOwner for the last owner."""
    principal.needs_role("admin", "owner")
    member = find_member(principal.tenant_id, member_id)
    rows = Member.objects.filter(tenant_id=principal.tenant_id, id=member.id)
    locked = rows.select_for_update().first()
    if locked is None:
        raise MemberNotFound
    check_may_move(principal, user_id=locked.user_id, role=locked.role)
    if locked.left_at is not None:
        return member
    with constraint_errors():
        rows.update(left_at=timezone.now())
    append_governance(
        principal=principal,
        payload={"type": "member.ended", "memberId": str(member.id), "role": locked.role},
    )
    return find_member(principal.tenant_id, member.id)
