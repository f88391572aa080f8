"""The first and the last day that there are, in zones where the moment is on a day that there is not."""

import pytest

from memory.records import clock
from tests.builders import TenantKit, make_tenant
from tests.pages.people import person
from tests.records.builders import a_record, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory

FIRST, LAST = "0001-01-01", "9999-12-31"


@pytest.fixture(params=["America/New_York", "Pacific/Kiritimati"])
def kit(db: None, request: pytest.FixtureRequest) -> TenantKit:
    return make_tenant(time_zone=request.param)


@pytest.fixture
def app(kit: TenantKit) -> Memory:
    return Memory(kit.client("app", users=["ann"]))


@pytest.mark.parametrize("moment", [f"{FIRST}T00:00:00Z", f"{LAST}T23:59:59Z"])
def test_any_moment_can_be_asked_about(app: Memory, moment: str) -> None:
    record = app.remember("aisle")
    value = "aisle" if moment > "2" else None
    assert app.recall(as_of=moment)["value"] == value
    assert len(app.list(as_of=moment)) == (1 if value else 0)
    for what in ("explain", "history"):
        answer = app.client.get(f"{RECORDS}/{record['id']}/{what}", {"as_of": moment})
        assert answer.status_code == (200 if value or what == "history" else 404)


def test_what_is_said_of_the_first_and_the_last_day_holds_then(app: Memory) -> None:
    now = app.remember("now", valid_from="2026-01-01", valid_until=LAST)
    app.remember("always before", valid_from=FIRST)
    last = app.remember("at last", valid_from=LAST)
    assert app.recall()["value"] == "now"
    assert app.recall(as_of="2020-01-01T00:00:00Z")["value"] == "always before"
    with clock.fixed_at(clock.start_of(clock.day_of(clock.now(), "UTC").max, "UTC")):
        app.recall()
        assert {one["id"] for one in app.list()} <= {now["id"], last["id"]}


@pytest.mark.parametrize("since", [FIRST, LAST, "2999-01-01"])
def test_nothing_is_out_of_date_since_a_day_before_all_others_or_one_to_come(
    app: Memory, since: str
) -> None:
    record = app.remember("aisle")
    path = f"{RECORDS}/{record['id']}/routes/out-of-date"
    details = refusal(app.client.post(path, {"since": since}), 400, "bad-input")
    assert details["issues"][0]["path"] == "/since"
    assert app.recall(context=ANN)["value"] == "aisle"
    body_of(app.client.post(RECORDS, a_record("x", key="k", valid_until=FIRST)), 201)


@pytest.mark.parametrize("day", [FIRST, LAST])
def test_a_page_that_is_asked_from_or_until_such_a_day_answers(kit: TenantKit, day: str) -> None:
    auditor = person(kit, "auditor")
    for path in ("audit/runs/", "audit/access/", "register/"):
        for name in ("since", "until"):
            assert auditor.get(path, {name: day}).status_code == 200, (path, name)
