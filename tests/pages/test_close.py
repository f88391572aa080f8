"""Closing a workspace: by its owner alone, never while something is held, and with the last word under a seal."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.management.base import CommandError
from django.utils import timezone

from corrections.page_links import make_page_link
from memory.housekeeping import seal_moved
from memory.tenancy import all_tenants, tenant_context
from tests.builders import ApiClient, TenantKit
from tests.commands.commands import told
from tests.lifecycle.facts import count, write
from tests.lifecycle.test_holds import place
from tests.pages.people import Person, person, text_of
from tests.records.builders import body_of, refusal

PAGE = "admin/workspace/close"


def close(who: Person) -> Any:
    return who.post(PAGE, {"slug": who.kit.slug})


def governance(kit: TenantKit, *types: str) -> list[dict[str, Any]]:
    log = kit.client("auditor").get("/v1/memory/runs/kindmem.governance/log?limit=200")
    return [one["payload"] for one in log.json()["data"] if one["payload"]["type"] in types]


def test_after_it_is_closed_nobody_comes_in_and_everything_is_kept(live_acme: TenantKit) -> None:
    owner, auditor = person(live_acme, "owner"), person(live_acme, "auditor")
    write(live_acme, content="kept")
    app = live_acme.client("app", users=["ann"])
    with tenant_context(live_acme.id):
        link = make_page_link(principal=live_acme.principal("app", users=["ann"]), subject="ann")
    guest = Person(live_acme, "person", 0, "", "ann")
    guest.browser.post(link.path)
    assert guest.get("memory/").status_code == 200
    assert "Everything, as it is now" in text_of(owner.get(PAGE))
    assert close(owner)["Location"] == "/tenants/"
    refusal(app.get("/v1/memory/me"), 401, "auth-revoked")
    for reader in (owner, auditor):
        assert reader.get("audit/runs/").status_code == 404
    assert guest.get("memory/").status_code != 200
    assert live_acme.slug not in {slug for _, slug in all_tenants()}
    assert count(live_acme, "fact") == 1


def test_its_last_word_is_sealed_and_the_operator_opens_it_again(live_acme: TenantKit) -> None:
    owner = person(live_acme, "owner")
    app: ApiClient = live_acme.client("app", users=["ann"])
    close(owner)
    seal_moved()  # which leaves it alone
    told("reopen_tenant", live_acme.slug)
    assert app.get("/v1/memory/me").status_code == 200
    assert owner.get("audit/runs/").status_code == 200
    assert [one["type"] for one in governance(live_acme, "tenant.closed", "tenant.reopened")] == [
        "tenant.closed",
        "tenant.reopened",
    ]
    with pytest.raises(CommandError, match="is open"):
        told("reopen_tenant", live_acme.slug)


def test_a_hold_keeps_it_open_and_the_refusal_is_logged(acme: TenantKit) -> None:
    owner = person(acme, "owner")
    fact = write(acme, content="held")
    hold = place(acme, fact_ids=(fact.id,))
    answer = close(owner)
    assert answer.status_code == 409
    assert "A legal hold is active" in text_of(answer)
    assert owner.get("admin/").status_code == 200
    assert governance(acme, "hold.refused") == [
        {"type": "hold.refused", "act": "tenant.close", "ids": [str(hold.id)]}
    ]


def test_an_unfinished_erasure_keeps_it_open(acme: TenantKit) -> None:
    owner = person(acme, "owner")
    body_of(acme.client("admin").post("/v1/memory/erasures", {"factId": "f"}), 202)
    assert "An erasure is not finished" in text_of(close(owner))
    assert owner.get("admin/").status_code == 200


def test_its_name_is_typed_and_identity_proved(acme: TenantKit) -> None:
    owner = person(acme, "owner")
    assert owner.post(PAGE, {"slug": "another"}).status_code == 422
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        assert "Is it you?" in text_of(close(owner))
    assert governance(acme, "tenant.closed") == []


def test_only_an_owner_closes_it(acme: TenantKit) -> None:
    for role in ("admin", "auditor", "person"):
        assert close(person(acme, role)).status_code == 403
    assert "Close the workspace" not in text_of(person(acme, "admin").get("admin/workspace/"))
    assert "Close the workspace" in text_of(person(acme, "owner").get("admin/workspace/"))
