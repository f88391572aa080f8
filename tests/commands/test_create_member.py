"""`create_member`: who becomes what, once, and never at the cost of somebody else's account."""

import io

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management.base import CommandError
from django.utils import timezone

from memory.access import Principal
from memory.actions.create_member import create_member
from memory.errors import PermissionDenied
from memory.models import Member
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant
from tests.commands.commands import answered, told
from tests.commands.governance import governance

PASSWORD = "correct horse battery"


def with_stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def members(kit: TenantKit) -> list[Member]:
    with tenant_context(kit.id):
        return list(Member.objects.order_by("created_at"))


def test_a_new_member_signs_in_with_the_password_of_stdin(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_stdin(monkeypatch, PASSWORD + "\n")
    made = answered(
        "create_member", "acme", " Zoe@Example.COM", "--role", "admin", "--password-stdin"
    )
    (member,) = members(acme)
    assert made == {
        "memberId": str(member.id),
        "email": "zoe@example.com",
        "role": "admin",
        "isNewUser": True,
    }
    user = authenticate(username="zoe@example.com", password=PASSWORD)
    assert user is not None
    assert (user.pk, user.email) == (member.user_id, "zoe@example.com")  # type: ignore[attr-defined]
    assert not user.is_staff  # type: ignore[attr-defined]


def test_a_poor_password_is_refused_in_whole_sentences(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_stdin(monkeypatch, "qx7Lw\n")
    with pytest.raises(CommandError) as refused:
        told("create_member", "acme", "zoe@example.com", "--role", "admin", "--password-stdin")
    said = str(refused.value)
    assert said.startswith("password This password is too short. ")
    assert said.endswith("characters.")
    assert not said.endswith("..")


def test_without_a_password_nobody_can_sign_in_by_one_and_the_answer_says_how_to_set_it(
    acme: TenantKit,
) -> None:
    said = told("create_member", "acme", "zoe@example.com", "--role", "auditor")
    assert "changepassword zoe@example.com" in said
    assert not get_user_model().objects.get(username="zoe@example.com").has_usable_password()


def test_a_person_is_somebody_in_the_memory_of_the_tenant(acme: TenantKit) -> None:
    with pytest.raises(CommandError, match="subject is required for a person"):
        told("create_member", "acme", "zoe@example.com", "--role", "person")
    told("create_member", "acme", "zoe@example.com", "--role", "person", "--subject", "zoë-17")
    (member,) = members(acme)
    assert (member.role, member.subject_id) == ("person", "zoë-17")


def test_two_members_are_never_the_same_person(acme: TenantKit) -> None:
    told("create_member", "acme", "zoe@example.com", "--role", "person", "--subject", "z1")
    with pytest.raises(CommandError, match="subject is another member's"):
        told("create_member", "acme", "yan@example.com", "--role", "person", "--subject", "z1")


def test_the_same_call_again_changes_nothing(acme: TenantKit) -> None:
    call = ("create_member", "acme", "zoe@example.com", "--role", "admin")
    first, second = answered(*call), answered(*call)
    assert first["memberId"] == second["memberId"]
    assert second["isNewUser"] is False
    assert len(governance(acme)) == 1


def test_a_member_keeps_the_role_that_was_given(acme: TenantKit) -> None:
    told("create_member", "acme", "zoe@example.com", "--role", "auditor")
    with pytest.raises(CommandError, match=r"a member already.*auditor"):
        told("create_member", "acme", "zoe@example.com", "--role", "admin")
    assert members(acme)[0].role == "auditor"


def test_who_left_may_come_back_in_another_role(acme: TenantKit) -> None:
    made = answered("create_member", "acme", "zoe@example.com", "--role", "auditor")
    with tenant_context(acme.id):
        Member.objects.update(left_at=timezone.now())
    again = answered("create_member", "acme", "zoe@example.com", "--role", "admin")
    (member,) = members(acme)
    assert again["memberId"] == made["memberId"] == str(member.id)
    assert (member.role, member.left_at) == ("admin", None)


def test_one_account_serves_two_tenants_and_neither_changes_its_password(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_tenant()
    with_stdin(monkeypatch, PASSWORD + "\n")
    told("create_member", "acme", "zoe@example.com", "--role", "admin", "--password-stdin")
    with_stdin(monkeypatch, "another password altogether\n")
    with pytest.raises(
        CommandError, match="password this account exists already and keeps its own"
    ):
        told("create_member", other.slug, "zoe@example.com", "--role", "owner", "--password-stdin")
    told("create_member", other.slug, "zoe@example.com", "--role", "owner")
    assert authenticate(username="zoe@example.com", password=PASSWORD) is not None
    assert len(members(acme)) == len(members(other)) == 1


@pytest.mark.parametrize(
    ("email", "password", "says"),
    [
        ("no address", "", "email must be an e-mail address"),
        ("a" * 150 + "@example.com", "", "email"),
        ("zoe@example.com", "short", "password This password is too short"),
        ("zoe@example.com", "", "password This password is too short"),
    ],
)
def test_what_it_does_not_take_it_names_and_makes_nobody(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch, email: str, password: str, says: str
) -> None:
    with_stdin(monkeypatch, password + "\n")
    with pytest.raises(CommandError, match=says):
        told("create_member", "acme", email, "--role", "admin", "--password-stdin")
    assert members(acme) == []
    assert not get_user_model().objects.filter(username=email).exists()


def test_the_governance_log_names_the_role_and_never_the_person(acme: TenantKit) -> None:
    told("create_member", "acme", "zoe@example.com", "--role", "person", "--subject", "z1")
    (member,) = members(acme)
    assert governance(acme) == [
        {"type": "member.created", "memberId": str(member.id), "role": "person"}
    ]


@pytest.mark.parametrize("role", ["agent", "app", "auditor"])
def test_only_admins_and_owners_make_members(acme: TenantKit, role: str) -> None:
    with tenant_context(acme.id), pytest.raises(PermissionDenied):
        create_member(principal=acme.principal(role), email="zoe@example.com", role="auditor")


def test_only_an_owner_appoints_admins(acme: TenantKit) -> None:
    admin = acme.principal("admin")
    owner = Principal(
        tenant_id=acme.id,
        tenant_slug="acme",
        kind="member",
        role="owner",
        id="1",
        name="o",
        abilities=frozenset(),
    )
    create_member(principal=admin, email="yan@example.com", role="auditor")
    for role in ("admin", "owner"):
        with pytest.raises(PermissionDenied):
            create_member(principal=admin, email="zoe@example.com", role=role)
    assert create_member(principal=owner, email="zoe@example.com", role="admin").role == "admin"
