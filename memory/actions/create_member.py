"""Make a user a member of a tenant, with a role there.

The user's account is one for the whole installation and may serve several tenants, so a tenant never changes the password of an
account that is there already. Who left may come back; whoever is a member keeps the role until it is changed on purpose.
"""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.admission import ID_MAX, admit_value
from memory.admission import BadInput as Inadmissible
from memory.erasure.progress import check_none_erases
from memory.errors import BadInput, MemberExists, PermissionDenied, constraint_errors
from memory.ids import new_id
from memory.models import Member
from memory.tenancy import tenant_context

ROLES = ("owner", "admin", "auditor", "person")
EMAIL_MAX = 150
"""Characters; an address is also the account's user name."""


@dataclass(frozen=True, slots=True)
class NewMember:
    """`is_new_user`: whether the account was made, rather than found."""

    id: UUID
    user_id: int
    email: str
    role: str
    subject: str | None
    is_new_user: bool


def create_member(
    *,
    principal: Principal,
    email: str,
    role: str,
    subject: str | None = None,
    password: str | None = None,
) -> NewMember:
    """The member. Without a password a new account can't sign in by one. The same call again gives the same member.

    subject: the person that the member is in this tenant's memory; a `person` has one.
    Raises PermissionDenied, BadInput, ErasureInProgress; MemberExists when this user is a member with another role or subject.
    """
    check_may_appoint(principal, role)
    email = _address(email)
    check_subject(role, subject)
    with (
        constraint_errors(
            member_subject_is_one_person=BadInput.at("subject", "is another member's"),
            auth_user_username_key=BadInput.at("email", "is being added right now; try again"),
        ),
        tenant_context(principal.tenant_id),
    ):
        check_none_erases(principal.tenant_id, [subject])
        user_id, is_new = _account(email, password)
        member = _place(principal, user_id, role, subject)
    return NewMember(
        id=member, user_id=user_id, email=email, role=role, subject=subject, is_new_user=is_new
    )


def check_may_appoint(principal: Principal, role: str) -> None:
    principal.needs_role("admin", "owner")
    if role not in ROLES:
        raise BadInput.at("role", "must be one of: " + ", ".join(ROLES))
    if role in ("owner", "admin") and principal.kind != "system" and principal.role != "owner":
        raise PermissionDenied(needs="the role owner, to appoint owners and admins")


def _address(email: str) -> str:
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise BadInput.at("email", "must be an e-mail address") from None
    if len(address) > EMAIL_MAX:
        raise BadInput.at("email", f"must have at most {EMAIL_MAX} characters")
    return address


def check_subject(role: str, subject: str | None) -> None:
    if subject is None:
        if role == "person":
            # courtesy; member_person_has_subject decides
            raise BadInput.at(
                "subject", "is required for a person: the id that agents know them by"
            )
        return
    try:
        admit_value(subject)
    except Inadmissible as error:
        raise BadInput.at("subject", error.issues[0]["message"]) from None
    if not 1 <= len(subject) <= ID_MAX:
        raise BadInput.at("subject", f"must have 1 to {ID_MAX} characters")


def _account(email: str, password: str | None) -> tuple[int, bool]:
    users = get_user_model().objects
    found = users.filter(username=email).first()
    if found is not None:
        if password is not None:
            raise BadInput.at("password", "this account exists already and keeps its own")
        return found.pk, False
    user = get_user_model()(username=email, email=email)
    if password is None:
        user.set_unusable_password()
    else:
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise BadInput.at("password", " ".join(error.messages)) from None
        user.set_password(password)
    user.save()
    return user.pk, True


def _place(principal: Principal, user_id: int, role: str, subject: str | None) -> UUID:
    """The member's id, made or found; a change is told to the governance log."""
    members = Member.objects.filter(tenant_id=principal.tenant_id, user_id=user_id)
    member = members.select_for_update().first()
    if member is not None and member.left_at is None:
        if (member.role, member.subject_id) != (role, subject):
            raise MemberExists(role=member.role)
        return member.id
    granted = {
        "role": role,
        "subject_id": subject,
        "role_granted_at": timezone.now(),
        "role_granted_by": principal.writer,
    }
    if member is not None:
        members.update(left_at=None, **granted)
        member_id = member.id
    else:
        member_id = new_id()
        Member.objects.create(
            tenant_id=principal.tenant_id, id=member_id, user_id=user_id, **granted
        )
    append_governance(
        principal=principal,
        payload={"type": "member.created", "memberId": str(member_id), "role": role},
    )
    return member_id
