"""People, as signed-in members: their writes are asserted, their checks verify, and only admins among them hold."""

import dataclasses
from typing import Any

import pytest

from memory.access import DEFAULT_ABILITIES, Containers, Principal
from memory.actions.verify_fact import verify_fact
from memory.actions.write_fact import write_fact
from memory.errors import FactNotFound, PermissionDenied
from memory.fact_shape import FactDraft, FactView, Retention
from memory.tenancy import tenant_context
from tests.builders import TenantKit


def member(kit: TenantKit, role: Any, subject: str | None = None) -> Principal:
    about = frozenset({subject}) if subject else frozenset()
    return Principal(
        tenant_id=kit.id,
        tenant_slug=kit.slug,
        kind="member",
        role=role,
        id="17",
        name="member.17",
        abilities=DEFAULT_ABILITIES[role],
        containers=Containers(everything=role != "person", users=about, participants=about),
        subject=subject,
    )


def draft(user: str, **more: Any) -> FactDraft:
    return FactDraft(type="note", scope={"userId": user}, content={"seat": "window"}, **more)


def test_a_person_writes_and_verifies_what_is_their_own(acme: TenantKit) -> None:
    ann, bob = member(acme, "person", "ann"), member(acme, "person", "bob")
    with tenant_context(acme.id):
        fact = write_fact(principal=ann, draft=draft("ann"))
        assert (fact.trust, fact.attributed_kind, fact.attributed_id) == ("asserted", "user", "17")
        with pytest.raises(PermissionDenied):
            write_fact(principal=ann, draft=draft("bob"))
        with pytest.raises(FactNotFound):
            verify_fact(principal=bob, fact_id=fact.id)
        verified = verify_fact(principal=ann, fact_id=fact.id)
        assert (verified.trust, verified.verified_by) == ("verified", "user:17")


@pytest.mark.parametrize(
    ("role", "may"), [("admin", True), ("owner", True), ("person", False), ("auditor", False)]
)
def test_which_members_open_a_hold(acme: TenantKit, role: str, may: bool) -> None:
    who = member(acme, role, "ann" if role == "person" else None)

    def held() -> FactView:
        with tenant_context(acme.id):
            return write_fact(
                principal=who, draft=draft("ann", retention=Retention(legal_hold=True))
            )

    if may:
        assert held().is_held
    else:
        with pytest.raises(PermissionDenied):
            held()


def test_an_agent_acting_for_a_project_reaches_its_participants(acme: TenantKit) -> None:
    agent = dataclasses.replace(
        member(acme, "agent"),
        kind="key",
        containers=Containers(on_behalf_of=frozenset({"p1"})),
    )
    scope = {"projectId": "p1", "participantId": "u-1"}
    with tenant_context(acme.id):
        fact = write_fact(principal=agent, draft=FactDraft(type="note", scope=scope, content=1))
        assert fact.scope == {**scope, "tenantId": acme.slug}
        with pytest.raises(PermissionDenied):
            write_fact(
                principal=agent, draft=FactDraft(type="note", scope={"projectId": "p2"}, content=1)
            )
