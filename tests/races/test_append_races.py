"""Many writers on one run: one chain, no gap, no fork, every acknowledged entry there."""

import itertools

import pytest

from memory.actions.append_log_entries import append_governance, append_log_entries
from memory.api.transactions import in_transaction
from memory.binding import AppendLogInput, MemoryBinding
from memory.ids import new_text_id
from memory.log_entry import NewEntry
from memory.queries.run_log import run_log
from memory.tenancy import tenant_context
from tests.at_once import at_once
from tests.builders import ApiClient, TenantKit
from tests.log.test_append_and_read import recomputed

pytestmark = pytest.mark.races


def chain_of(tenant: TenantKit, run: str) -> list[dict[str, object]]:
    reader = tenant.client("admin")
    entries, cursor = [], None
    while True:
        page = reader.get(
            f"/v1/memory/runs/{run}/log", {"limit": 200, **({"cursor": cursor} if cursor else {})}
        ).json()
        entries += page["data"]
        cursor = page.get("nextCursor")
        if cursor is None:
            return entries


def assert_is_one_chain(entries: list[dict[str, object]], count: int) -> None:
    assert [entry["sequence"] for entry in entries] == list(range(count))
    assert all(entry["entryHash"] == recomputed(entry) for entry in entries)
    for before, after in itertools.pairwise(entries):
        assert after["prevHash"] == before["entryHash"]


def appended(token: str, path: str, body: object, key: str) -> int:
    """The status once the server is not too busy to say: a writer that waited too long is told to repeat itself."""
    for _ in range(10):
        answer = ApiClient(token).post(path, body, Idempotency_Key=key)
        if answer.status_code != 503:
            break
    return answer.status_code


def test_fifty_first_writers_of_a_new_run_make_one_chain(live_acme: TenantKit) -> None:
    token = live_acme.token("agent", projects=["p1"])

    def write(number: int) -> int:
        body = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": number}
        return appended(token, "/v1/memory/runs/new/log", body, f"k{number}")

    assert at_once(50, write) == [201] * 50
    entries = chain_of(live_acme, "new")
    assert_is_one_chain(entries, 50)
    assert sorted(entry["payload"] for entry in entries) == list(range(50))  # type: ignore[type-var]


def test_batches_and_single_entries_of_a_new_run_interleave_whole(live_acme: TenantKit) -> None:
    token = live_acme.token("agent", projects=["p1"])
    entry = {"kind": "tool-call", "scope": {"projectId": "p1"}}

    def write(number: int) -> int:
        if number % 2:
            one = {**entry, "payload": [number]}
            return appended(token, "/v1/memory/runs/mix/log", one, f"k{number}")
        bodies = [{**entry, "payload": [number, part]} for part in range(5)]
        path = "/v1/memory/runs/mix/log/batch"
        return appended(token, path, {"entries": bodies}, f"k{number}")

    assert at_once(12, write) == [201] * 12
    entries = chain_of(live_acme, "mix")
    assert_is_one_chain(entries, 6 + 6 * 5)
    payloads = [entry["payload"] for entry in entries]
    for number in range(0, 12, 2):
        start = payloads.index([number, 0])
        assert payloads[start : start + 5] == [[number, part] for part in range(5)]


def test_one_retried_request_sent_many_times_at_once_is_one_entry(live_acme: TenantKit) -> None:
    token = live_acme.token("agent", projects=["p1"])
    body = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {"n": 1}}

    def write(_: int) -> tuple[int, str]:
        answer = ApiClient(token).post("/v1/memory/runs/once/log", body, Idempotency_Key="same")
        return answer.status_code, answer.json().get("id") or answer.json()["error"]["code"]

    answers = at_once(12, write)
    made = {answer for answer in answers if answer[0] == 201}
    assert len(made) == 1
    assert {answer for answer in answers if answer[0] != 201} <= {
        (409, "idempotency-key-in-flight")
    }
    assert_is_one_chain(chain_of(live_acme, "once"), 1)
    assert write(0) == made.pop()


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("is_new", [True, False])
def test_the_same_entries_sent_many_times_at_once_by_their_ids_are_stored_once(
    live_acme: TenantKit, count: int, is_new: bool
) -> None:
    """Without any Idempotency-Key: whoever comes second is told what is stored."""
    token = live_acme.token("agent", projects=["p1"])
    one = {"kind": "tool-call", "scope": {"projectId": "p1"}}
    if not is_new:
        assert ApiClient(token).post("/v1/memory/runs/ids/log", one).status_code == 201
    entries = [{**one, "id": f"entry-{number}"} for number in range(count)]
    path = "/v1/memory/runs/ids/log" + ("" if count == 1 else "/batch")
    body = entries[0] if count == 1 else {"entries": entries}

    def write(_: int) -> tuple[int, bytes]:
        answer = ApiClient(token).post(path, body)
        return answer.status_code, answer.content

    answers = at_once(10, write)
    assert {status for status, _ in answers} == {201}, answers
    assert len(set(answers)) == 1
    assert_is_one_chain(chain_of(live_acme, "ids"), count + (not is_new))


def test_the_binding_stores_an_entry_once_however_often_it_is_sent_at_once(
    live_acme: TenantKit,
) -> None:
    principal = live_acme.principal("agent", projects=["p1"])
    given = AppendLogInput(
        tenant_id=live_acme.slug,
        run_id="bound",
        kind="tool-call",
        scope={"projectId": "p1"},
        id="entry-of-the-binding",
    )
    results = at_once(10, lambda _: MemoryBinding(principal).append_log(given))
    assert {result.value["sequence"] for result in results} == {0}
    assert_is_one_chain(chain_of(live_acme, "bound"), 1)


def test_governance_entries_of_many_acts_at_once_make_one_chain(live_acme: TenantKit) -> None:
    principal = live_acme.principal("admin")

    def act(number: int) -> int:
        with tenant_context(live_acme.id):
            return append_governance(
                principal=principal, payload={"type": "test", "n": number}
            ).sequence

    sequences = sorted(at_once(16, act))
    first = sequences[0]  # making the key was an act, too
    assert sequences == list(range(first, first + 16))
    chain = chain_of(live_acme, "kindmem.governance")
    assert_is_one_chain(chain, len(chain))
    assert len(chain) >= first + 16


def test_timestamps_never_go_back_within_a_run(live_acme: TenantKit) -> None:
    principal = live_acme.principal("agent", projects=["p1"])
    scope = {"tenantId": live_acme.slug, "projectId": "p1"}

    def write(_: int) -> None:
        for _ in range(5):
            with tenant_context(live_acme.id):
                entry = NewEntry(kind="tool-call", scope=scope, id=new_text_id())
                append_log_entries(principal=principal, run_id="times", entries=[entry])

    assert at_once(8, write) == [None] * 8

    def read() -> list[str]:
        with tenant_context(live_acme.id):
            return [entry.timestamp for entry in run_log(principal, "times", limit=100)]

    times = in_transaction(read)
    assert times == sorted(times)
    assert len(times) == 40
