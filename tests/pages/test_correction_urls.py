"""Every record's `correction_url` opens for its person, whatever the record's id and its route's name hold."""

from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.path_segments import segment_of, text_of
from tests.builders import TenantKit
from tests.pages.people import Person, person
from tests.pages.people import text_of as read
from tests.records.builders import a_record, body_of

HOSTILE = (
    "a/b",
    "/",
    "//evil.example",
    "..",
    ".",
    "...",
    "../../audit/runs",
    "a/../b",
    "%2e%2e",
    "%",
    "%2F",
    "~",
    "~Lg",
    "~~",
    "?",
    "a?b=c",
    "#",
    "a#b",
    "a b",
    " ",
    "+",
    "\\",
    "..\\..",
    ";a=b",
    "a;b",
    "-",
    "correct",
    "Ünï 🦊",
    "日本語",
    "\u202eabc",
    "a\nb",
    "\t",
    '"><script>',
    "{record_id}",
    "%(id)s",
    "x" * 256,
    "🦊" * 256,
)
SITE = "http://localhost:8000"


@pytest.fixture
def ann(acme: TenantKit) -> Person:
    return person(acme, "person", subject="ann")


def opened(who: Person, url: str) -> Any:
    """The page at the address, as a browser asks for it: dot segments are taken out, the fragment stays behind."""
    assert url.startswith(f"{SITE}/t/{who.kit.slug}/memory/")
    assert urljoin(SITE, url) == url
    parts = urlsplit(url)
    assert (parts.query, parts.fragment) == ("", "")
    assert parts.path.isascii()
    return who.get(parts.path)


def remembered(kit: TenantKit, value: Any = "aisle", **changes: Any) -> dict[str, Any]:
    app = kit.client("app", users=["ann"])
    return dict(body_of(app.post("/v1/memory/records", a_record(value, **changes)), 201))


def told(kit: TenantKit, key: str, **context: Any) -> dict[str, Any]:
    agent = kit.client("agent", users=["ann"])
    body = {"key": key, "context": {"user_id": "ann", **context}}
    return dict(body_of(agent.post("/v1/memory/recall", body), 200))


def explained(kit: TenantKit, record_id: str) -> dict[str, Any]:
    app = kit.client("app", users=["ann"])
    path = f"/v1/memory/records/{quote(record_id, safe='')}/explain"
    return dict(body_of(app.get(path), 200))


def test_a_records_page_opens_whatever_its_id_is(ann: Person) -> None:
    for number, name in enumerate(HOSTILE):
        remembered(ann.kit, f"value {number}", id=name, key=f"hostile.id_{number}")
        page = opened(ann, told(ann.kit, f"hostile.id_{number}")["correction_url"])
        assert page.status_code == 200, ascii(name)
        assert f"value {number}" in read(page)


def test_a_records_page_opens_whatever_its_routes_name_is(ann: Person) -> None:
    for number, name in enumerate(HOSTILE):
        key = f"hostile.route_{number}"
        record = remembered(ann.kit, f"value {number}", route=name, key=key)
        url = explained(ann.kit, record["id"])["correction_url"]
        assert url == told(ann.kit, key)["correction_url"]
        page = opened(ann, url)
        assert page.status_code == 200, ascii(name)
        assert f"value {number}" in read(page)


def test_the_address_opens_in_every_state_of_a_record(ann: Person) -> None:
    kit, app = ann.kit, ann.kit.client("app", users=["ann"])
    active = remembered(kit, key="a.active")
    replaced = remembered(kit, key="a.replaced", bindings={"trip_id": "T1"}, level="instance")
    correction = {"new_value": "window", "context": {"user_id": "ann", "trip_id": "T1"}}
    body_of(app.post(f"/v1/memory/records/{replaced['id']}/correct", correction), 201)
    over = remembered(kit, key="a.over")
    body_of(app.post(f"/v1/memory/records/{over['id']}/routes/out-of-date", {}), 200)
    forgotten = remembered(kit, key="a.forgotten")
    body_of(app.post(f"/v1/memory/records/{forgotten['id']}/forget"), 200)
    disputed = remembered(kit, key="a.disputed")
    body_of(
        app.post(f"/v1/memory/records/{disputed['id']}/routes/dispute", {"statement": "no"}), 200
    )
    policy = remembered(
        kit, None, key="a.policy", authority="policy", source_of_truth="https://x.example/p"
    )
    states = {}
    for record in (active, replaced, over, forgotten, disputed, policy):
        told = explained(kit, record["id"])
        states[record["key"]] = told["lifecycle"]["status"]
        assert opened(ann, told["correction_url"]).status_code == 200, record["key"]
    assert set(states.values()) == {"active", "superseded", "expired", "deleted"}


@pytest.mark.parametrize(
    "route",
    ["confirm", "fix-value", "out-of-date", "wrong-person", "dispute", "forget", "never-infer"],
)
def test_every_built_in_route_opens(route: str, ann: Person) -> None:
    record = remembered(ann.kit, route=route)
    assert opened(ann, explained(ann.kit, record["id"])["correction_url"]).status_code == 200


def test_where_only_an_admin_corrects_the_person_reads_so_and_sees_what_they_can_do(
    ann: Person,
) -> None:
    admin = ann.kit.client("admin")
    form = {
        "name": "payroll desk",
        "label": "Payroll desk",
        "audience": "admin",
        "url_template": "https://pay.example.com/{record_id}",
    }
    body_of(admin.post("/v1/memory/routes", form), 201)
    record = remembered(ann.kit, "aisle", route="payroll desk")
    url = explained(ann.kit, record["id"])["correction_url"]
    assert url == told(ann.kit, "travel.seat")["correction_url"]
    sent_on = opened(ann, url)
    assert sent_on.status_code == 302
    page = read(ann.get(sent_on["Location"]))
    assert "An admin corrects this" in page
    assert "aisle" in page


@pytest.mark.parametrize("kind", ["project", "client", "org"])
@pytest.mark.parametrize("role", ["owner", "admin"])
def test_what_is_about_no_person_opens_for_those_who_govern_and_is_corrected_there(
    acme: TenantKit, kind: str, role: str
) -> None:
    app = acme.client("app", everything=True)
    subject = {"type": kind, "id": "apollo"}
    given = a_record("DE-1", subject=subject, level="project", bindings={"site_id": "s"})
    record = body_of(app.post("/v1/memory/records", given), 201)
    told = body_of(app.get(f"/v1/memory/records/{record['id']}/explain"), 200)
    admin = person(acme, role)
    page = opened(admin, told["correction_url"])
    assert page.status_code == 200
    assert "DE-1" in read(page)
    path = urlsplit(told["correction_url"]).path
    once = page.content.decode().split('name="once" value="', 1)[1].split('"', 1)[0]
    form = {"new_value": "DE-2", "expect": record["id"], "once": once, "reason": "moved"}
    sent = admin.post(path, form)
    assert sent.status_code == 302, read(sent)
    shown = read(admin.get(sent["Location"]))
    assert "The receipt is R-" in shown
    assert "DE-2" in shown
    body = {"key": "travel.seat", "context": {"site_id": "s"}, "subject": subject}
    assert body_of(app.post("/v1/memory/recall", body), 200)["value"] == "DE-2"
    confirm = admin.post(f"memory/{record['id']}/confirm", {"once": "1" * 20})
    assert confirm.status_code in (302, 409)


@pytest.mark.parametrize("role", ["auditor", "person"])
def test_what_is_about_no_person_does_not_open_for_others(acme: TenantKit, role: str) -> None:
    app = acme.client("app", everything=True)
    subject = {"type": "org", "id": "apollo"}
    record = body_of(app.post("/v1/memory/records", a_record("DE-1", subject=subject)), 201)
    told = body_of(app.get(f"/v1/memory/records/{record['id']}/explain"), 200)
    assert opened(person(acme, role), told["correction_url"]).status_code == 404


@pytest.mark.parametrize("role", ["owner", "admin", "auditor"])
def test_a_persons_record_opens_for_nobody_who_governs(ann: Person, role: str) -> None:
    record = remembered(ann.kit, "a secret of hers")
    url = explained(ann.kit, record["id"])["correction_url"]
    governing = person(ann.kit, role)
    for path in (urlsplit(url).path, f"memory/{record['id']}/"):
        page = governing.get(path)
        assert page.status_code == 404
        assert "secret" not in read(page)
    assert governing.post(f"memory/{record['id']}/confirm", {"once": "1" * 20}).status_code == 404


def test_somebody_elses_record_does_not_open(ann: Person) -> None:
    remembered(ann.kit, id="of/ann")
    bob = person(ann.kit, "person", subject="bob")
    assert opened(bob, told(ann.kit, "travel.seat")["correction_url"]).status_code == 404


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=256))
def test_a_segment_stands_for_its_text_and_nothing_in_it_means_anything_to_a_url(text: str) -> None:
    segment = segment_of(text)
    assert text_of(segment) == text
    assert urljoin("http://h/t/", f"http://h/t/{segment}/x") == f"http://h/t/{segment}/x"
    assert set(segment) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:@~"
    )
    assert segment not in (".", "..")


@pytest.mark.parametrize("segment", ["~", "~!", "~A", "~_w", "~gA"])
def test_a_segment_that_stands_for_nothing_is_a_page_that_is_not_there(
    segment: str, ann: Person
) -> None:
    assert ann.get(f"memory/{segment}/correct/fix-value").status_code == 404
