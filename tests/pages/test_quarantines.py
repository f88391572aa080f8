"""Quarantine as pages: form, preview, act, result; lift and roll back; and who may."""

import re

import pytest

from tests.builders import ApiClient, TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.records.builders import a_record, an_inference, body_of

RECORDS = "/v1/memory/records"


@pytest.fixture
def admin(acme: TenantKit) -> Person:
    return person(acme, "admin")


@pytest.fixture
def agent(acme: TenantKit) -> ApiClient:
    return acme.client("agent", users=["ann"])


def prefix_of(client: ApiClient) -> str:
    return str(client.token).split("_")[1]


def guessed(agent: ApiClient, value: str, **changes: object) -> str:
    return str(body_of(agent.post(RECORDS, an_inference(value, **changes)), 201)["id"])


def once(page: str) -> str:
    found = re.search(r'name="once" value="([^"]*)"', page)
    assert found is not None
    return found.group(1)


def placed(admin: Person, agent: ApiClient) -> str:
    """The address of a new quarantine."""
    address = f"admin/quarantines/new?key={prefix_of(agent)}"
    fields = {"once": once(admin.get(address).content.decode()), "reason": "It was fed orders"}
    answer = admin.post(address, fields)
    assert answer.status_code == 302
    return str(answer["Location"])


def test_it_starts_empty_and_says_what_it_is_for(admin: Person) -> None:
    assert "Nothing was ever in quarantine" in text_of(admin.get("admin/quarantines/"))


def test_the_preview_names_what_would_go_out_of_use(admin: Person, agent: ApiClient) -> None:
    guessed(agent, "aisle")
    words = text_of(admin.get(f"admin/quarantines/new?key={prefix_of(agent)}"))
    for piece in ("1 memory, 0 facts", "travel › seat", "ann", "Nothing is destroyed"):
        assert piece in words
    nothing = text_of(admin.get("admin/quarantines/new?run=nosuch"))
    assert "Nothing that is in use was written so" in nothing


@pytest.mark.parametrize("query", ["key=zzz", "key=&run=", "run=a&key=b"])
def test_a_form_that_names_no_key_and_no_run_says_so(admin: Person, query: str) -> None:
    answer = admin.get(f"admin/quarantines/new?{query}")
    is_asked = query != "key=&run="
    assert answer.status_code == (422 if is_asked else 200)


def test_it_is_placed_and_lifted(acme: TenantKit, admin: Person, agent: ApiClient) -> None:
    record = guessed(agent, "aisle")
    address = placed(admin, agent)
    words = text_of(admin.get(address))
    for piece in ("Out of use", "It was fed orders", "travel › seat", "Lift it", "Roll it back"):
        assert piece in words
    app = acme.client("app", users=["ann"])
    assert app.get(f"{RECORDS}/{record}").status_code == 404
    answer = admin.post(f"{address}lift", {"once": once(admin.get(address).content.decode())})
    assert answer["Location"] == address
    assert "Lifted. It is used again" in text_of(admin.get(address))
    assert app.get(f"{RECORDS}/{record}").status_code == 200
    closed = admin.post(f"{address}roll-back", {})
    assert closed.status_code == 409
    assert "It is as it was" in text_of(closed)


def test_it_is_rolled_back_and_tells_what_came_back(
    acme: TenantKit, admin: Person, agent: ApiClient
) -> None:
    app = acme.client("app", users=["ann"])
    body_of(app.post(RECORDS, a_record("aisle")), 201)
    entry = {"kind": "user-message", "scope": {"userId": "ann"}, "payload": {"text": "window"}}
    word = body_of(app.post("/v1/memory/runs/chat/log", entry), 201)["id"]
    stated = a_record("window", evidence={"kind": "message", "ref": word})
    body_of(agent.post(RECORDS, stated), 201)
    address = placed(admin, agent)
    admin.post(f"{address}roll-back", {})
    words = text_of(admin.get(address))
    assert "Rolled back" in words
    assert "what came back" in words
    assert "Roll it back" not in words
    assert "Rolled back" in text_of(admin.get("admin/quarantines/"))
    asked = {"key": "travel.seat", "context": {"user_id": "ann"}}
    assert body_of(app.post("/v1/memory/recall", asked), 200)["value"] == "aisle"


def test_another_tenants_quarantine_is_not_there(live_acme: TenantKit) -> None:
    agent = live_acme.client("agent", users=["ann"])
    guessed(agent, "aisle")
    address = placed(person(live_acme, "admin"), agent)
    globex = make_tenant()
    other = person(globex, "admin")
    assert other.get(address).status_code == 404
    theirs = address.replace(f"/{live_acme.slug}/", f"/{globex.slug}/")
    assert other.get(theirs).status_code == 404


@pytest.mark.parametrize("role", ["person", "auditor"])
def test_nobody_but_admins(acme: TenantKit, role: str) -> None:
    reader = person(acme, role)
    assert reader.get("admin/quarantines/").status_code == 403
    assert reader.get("admin/quarantines/new").status_code == 403
