"""Members over HTTP: list, add, change a role, end. For admins; owners appoint owners and admins."""

from typing import Any

from memory.actions.change_role import change_role
from memory.actions.create_member import EMAIL_MAX, ROLES, create_member
from memory.actions.end_membership import end_membership
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, always, shape
from memory.queries.members import STATUSES, MemberView, find_member, list_members

TAG = "Members"
_STATUS = parameters.choice("status", STATUSES, "Only those.")
_ROLE = parameters.choice("role", ROLES, "Only those.")
ADD = Shape(
    shape(
        {
            "email": {"type": "string", "minLength": 3, "maxLength": EMAIL_MAX},
            "role": {"enum": list(ROLES)},
            "subject": ID,
        },
        required=("email", "role"),
    )
)
CHANGE = Shape(
    shape(
        {
            "role": {"enum": list(ROLES)},
            "subject": {"type": ["string", "null"], "minLength": 1, "maxLength": 256},
        },
        minProperties=1,
    )
)
MEMBER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "email", "role", "status", "roleGrantedAt", "createdAt"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "email": TEXT,
        "role": {"enum": list(ROLES)},
        "status": {"enum": list(STATUSES)},
        "subject": TEXT,
        "roleGrantedAt": INSTANT,
        "roleGrantedBy": TEXT,
        "createdAt": INSTANT,
        "endedAt": INSTANT,
    },
}
_ERRORS = ("bad-input", "unknown-field", "permission-denied")


class Members(ApiView):
    @operation(
        id="memory.listMembers",
        summary="List members (admin)",
        ability="read",
        query=(_STATUS, _ROLE, parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(MEMBER)},
        errors=_ERRORS,
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit = call.query["limit"]
        filters = {name: call.query[name] for name in ("status", "role")}
        position = read_cursor(call.principal, "listMembers", filters, call.query["cursor"])
        found = list_members(
            call.principal.tenant_id,
            **filters,
            after=position[0] if position else None,
            limit=limit + 1,
        )

        def cursor_after(member: MemberView) -> str:
            return make_cursor(call.principal, "listMembers", filters, [str(member.id)])

        return Answer(200, page(found, limit, render=MemberView.wire, next_cursor=cursor_after))

    @operation(
        id="memory.addMember",
        summary="Make somebody a member (admin; owners and admins: owner)",
        description=(
            "By their e-mail address. `subject`: the id by which agents know them; a `person` has one. An account is made when "
            "there is none; it has no password, and signs in by single sign-on until the operator sets one. The same call "
            "again answers the same member."
        ),
        ability="write",
        matters=always,
        body=ADD,
        answers={201: MEMBER},
        changes=True,
        errors=("member-exists", *_ERRORS),
        example={"email": "ann@example.com", "role": "person", "subject": "ann"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        said = call.body
        made = create_member(
            principal=call.principal,
            email=said["email"],
            role=said["role"],
            subject=said.get("subject"),
        )
        return Answer(201, find_member(call.principal.tenant_id, made.id).wire())


class Member(ApiView):
    @operation(
        id="memory.getMember",
        summary="Read a member (admin)",
        ability="read",
        answers={200: MEMBER},
        errors=("member-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        return Answer(200, find_member(call.principal.tenant_id, call.path["member_id"]).wire())

    @operation(
        id="memory.changeMember",
        summary="Give a member another role or subject (admin; to and from owner and admin: owner)",
        description=(
            "Nobody raises their own role or sets their own subject, and the last owner stays. For releasing holds a new role "
            "counts once the cooling-off time is over. `subject: null` takes it away."
        ),
        ability="write",
        matters=always,
        body=CHANGE,
        answers={200: MEMBER},
        changes=True,
        errors=("member-not-found", "last-owner", *_ERRORS),
        example={"role": "auditor"},
        tag=TAG,
    )
    def patch(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        member = find_member(call.principal.tenant_id, call.path["member_id"])
        changed = change_role(
            principal=call.principal,
            member_id=member.id,
            role=call.body.get("role", member.role),
            subject=call.body.get("subject", member.subject),
        )
        return Answer(200, changed.wire())


class MemberEnd(ApiView):
    @operation(
        id="memory.endMember",
        summary="End a membership (admin; of owners and admins: owner)",
        description="Their sessions here end with it. What they did keeps their name; the last owner stays.",
        ability="write",
        matters=always,
        answers={200: MEMBER},
        changes=True,
        errors=("member-not-found", "last-owner", "permission-denied"),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        ended = end_membership(principal=call.principal, member_id=call.path["member_id"])
        return Answer(200, ended.wire())
