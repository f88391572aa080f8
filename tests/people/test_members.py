"""Members over the API and on the pages: who may appoint whom, what ends at once, and what never ends."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from memory.access import system_principal
from memory.actions.change_role import change_role
from memory.actions.end_membership import end_membership
from memory.errors import MemberKeepsAnOwner, PermissionDenied
from memory.models import Member
from memory.tenancy import tenant_context
from tests.at_once import at_once
from tests.builders import TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.records.builders import body_of, refusal


def governance(kit: TenantKit, *types: str) -> list[dict[str, Any]]:
    log = kit.client("auditor").get("/v1/memory/runs/kindmem.governance/log?limit=200")
    return [one["payload"] for one in log.json()["data"] if one["payload"]["type"] in types]


def member_of(who: Person) -> Member:
    with tenant_context(who.kit.id):
        return Member.objects.get(tenant_id=who.kit.id, user_id=who.user_id)


def page_of(who: Person) -> str:
    return f"admin/members/{member_of(who).id}/"


def test_a_member_is_added_changed_and_ended_over_the_api(acme: TenantKit) -> None:
    admin = acme.client("admin")
    body = {"email": "Kim@example.com", "role": "person", "subject": "kim"}
    kim = body_of(admin.post("/v1/memory/members", body), 201)
    assert (kim["email"], kim["role"], kim["subject"]) == ("kim@example.com", "person", "kim")
    path = f"/v1/memory/members/{kim['id']}"
    assert body_of(admin.get(path), 200) == kim
    changed = body_of(admin.request("PATCH", path, {"role": "auditor"}), 200)
    assert (changed["role"], changed["subject"]) == ("auditor", "kim")
    assert changed["roleGrantedAt"] > kim["roleGrantedAt"]
    ended = body_of(admin.post(f"{path}/end"), 200)
    assert ended["status"] == "ended"
    refusal(admin.request("PATCH", path, {"role": "person"}), 404, "member-not-found")
    assert [one["type"] for one in governance(acme, *_ACTS)] == [*_ACTS]
    assert "kim" not in str(governance(acme, *_ACTS))


_ACTS = ("member.created", "member.role-changed", "member.ended")


def test_members_are_listed_by_state_and_role(acme: TenantKit) -> None:
    admin = acme.client("admin")
    gone, stays = person(acme, "auditor"), person(acme, "auditor")
    admin.post(f"/v1/memory/members/{member_of(gone).id}/end")
    person(acme, "person")

    def emails(**query: Any) -> set[str]:
        return {one["email"] for one in admin.get("/v1/memory/members", query).json()["data"]}

    assert emails(role="auditor", status="active") == {stays.email}
    assert emails(status="ended") == {gone.email}
    assert len(emails()) == 3


def test_only_owners_appoint_owners_and_admins_and_take_that_away(acme: TenantKit) -> None:
    owner, admin, auditor = person(acme, "owner"), person(acme, "admin"), person(acme, "auditor")
    other = person(acme, "admin")
    assert admin.post(page_of(auditor), {"role": "admin"}).status_code == 422
    for act in (f"{page_of(other)}end", f"{page_of(owner)}end"):
        assert admin.post(act).status_code == 409
    with tenant_context(acme.id):
        for target in (other, owner):
            with pytest.raises(PermissionDenied):
                change_role(
                    principal=admin.principal, member_id=member_of(target).id, role="auditor"
                )
        with pytest.raises(PermissionDenied):
            end_membership(principal=admin.principal, member_id=member_of(other).id)
    assert owner.post(page_of(auditor), {"role": "admin"}).status_code == 302
    assert owner.post(f"{page_of(other)}end").status_code == 302
    assert member_of(auditor).role == "admin"


def test_nobody_raises_their_own_role_or_says_whose_memory_is_theirs(acme: TenantKit) -> None:
    person(acme, "owner")
    admin = person(acme, "admin")
    with tenant_context(acme.id):
        for role, subject in (("owner", None), ("admin", "ann")):
            with pytest.raises(PermissionDenied):
                change_role(
                    principal=admin.principal,
                    member_id=member_of(admin).id,
                    role=role,
                    subject=subject,
                )
    assert member_of(admin).role == "admin"
    assert governance(acme, "member.role-changed") == []


def test_the_last_owner_neither_leaves_nor_steps_down_and_reads_why(acme: TenantKit) -> None:
    owner = person(acme, "owner")
    down = owner.post(page_of(owner), {"role": "admin"})
    assert down.status_code == 422
    assert "keeps at least one owner" in text_of(down)
    ended = owner.post(f"{page_of(owner)}end")
    assert ended.status_code == 409
    assert "keeps at least one owner" in text_of(ended)
    refusal(
        acme.client("admin").post(f"/v1/memory/members/{member_of(owner).id}/end"),
        403,
        "permission-denied",
    )
    assert member_of(owner).left_at is None


def test_of_two_owners_who_leave_at_once_one_stays(live_acme: TenantKit) -> None:
    owners = [person(live_acme, "owner") for _ in range(2)]
    ids = [member_of(one).id for one in owners]
    operator = system_principal(live_acme.id, live_acme.slug, id="tests")

    def leave(number: int) -> bool:
        try:
            with tenant_context(live_acme.id):
                end_membership(principal=operator, member_id=ids[number])
        except MemberKeepsAnOwner:
            return False
        return True

    assert sorted(at_once(2, leave)) == [False, True]


def test_an_ended_member_is_a_stranger_at_the_next_request_of_every_browser(
    acme: TenantKit,
) -> None:
    admin, auditor = person(acme, "admin"), person(acme, "auditor")
    assert auditor.get("audit/runs/").status_code == 200
    assert admin.post(f"{page_of(auditor)}end").status_code == 302
    assert auditor.get("audit/runs/").status_code == 404
    answer = auditor.browser.get("/v1/memory/me", headers={"Kindmem-Tenant": acme.slug})
    assert answer.status_code == 401


def test_a_changed_role_holds_from_the_next_request_and_its_time_counts_from_now(
    acme: TenantKit,
) -> None:
    owner, auditor = person(acme, "owner"), person(acme, "auditor")
    assert auditor.get("admin/").status_code == 403
    before = member_of(auditor).role_granted_at
    later = timezone.now() + timedelta(seconds=90)
    with time_machine.travel(later, tick=False):
        owner.post(page_of(auditor), {"role": "admin"})
        assert auditor.get("admin/").status_code == 200
    assert member_of(auditor).role_granted_at - before > timedelta(seconds=80)
    granted = member_of(auditor).role_granted_at
    owner.post(page_of(auditor), {"role": "admin", "subject": "kim"})
    assert member_of(auditor).role_granted_at == granted
    assert member_of(auditor).subject_id == "kim"


def test_a_member_is_added_on_the_page_by_address_role_and_id(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    bad = admin.post("admin/members/new", {"email": "kim@example.com", "role": "person"})
    assert bad.status_code == 422
    assert 'value="kim@example.com"' in bad.content.decode()
    fields = {"email": "kim@example.com", "role": "person", "subject": "kim"}
    assert admin.post("admin/members/new", fields).status_code == 302
    assert "kim@example.com" in text_of(admin.get("admin/members/?q=KIM@"))
    twice = admin.post("admin/members/new", {**fields, "role": "auditor"})
    assert "a member already" in text_of(twice)
    taken = admin.post("admin/members/new", {**fields, "email": "jo@example.com"})
    assert taken.status_code == 422
    assert "another member" in text_of(taken)


def test_adding_changing_and_ending_want_a_fresh_proof(acme: TenantKit) -> None:
    owner, auditor = person(acme, "owner"), person(acme, "auditor")
    fields = {"email": "kim@example.com", "role": "auditor"}
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        for path in ("admin/members/new", page_of(auditor), f"{page_of(auditor)}end"):
            assert "Is it you?" in text_of(owner.post(path, {**fields, "role": "admin"})), path
    assert member_of(auditor).role == "auditor"


def test_another_tenants_member_is_nobody_here(acme: TenantKit) -> None:
    stranger = person(make_tenant(), "auditor")
    admin = person(acme, "owner")
    for path in (page_of(stranger), f"{page_of(stranger)}end"):
        assert admin.get(path).status_code == 404
        assert admin.post(path, {"role": "auditor"}).status_code == 404


def test_auditors_and_people_keep_no_members(acme: TenantKit) -> None:
    for role in ("auditor", "person"):
        reader = person(acme, role)
        for path in ("admin/members/", "admin/members/new", "admin/keys/", "admin/keys/new"):
            assert reader.get(path).status_code == 403
