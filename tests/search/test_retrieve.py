"""Retrieval over HTTP: what each mode answers, and what it refuses."""

from typing import Any

import pytest
from django.test import override_settings

from memory.embeddings.provider import EmbeddingUnavailable, get_provider, provider_registered
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.search.providers import StubProvider

URL = "/v1/memory/retrieve"
SCOPE = {"projectId": "p1"}


@pytest.fixture
def app(acme: TenantKit) -> ApiClient:
    get_provider().embed(["once it is loaded, vectors come with the write"])
    return acme.client("app", projects=["p1", "p2"])


def write(client: ApiClient, content: Any, **more: Any) -> str:
    answer = client.post(
        "/v1/memory/facts", {"type": "note", "scope": SCOPE, "content": content, **more}
    )
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def retrieve(client: ApiClient, **body: Any) -> dict[str, Any]:
    answer = client.post(URL, body)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [result["fact"]["id"] for result in found["results"]]


def refusal(client: ApiClient, **body: Any) -> tuple[int, str]:
    answer = client.post(URL, body)
    return answer.status_code, answer.json()["error"]["code"]


def test_list_answers_the_newest_facts_first_without_scores(app: ApiClient) -> None:
    written = [write(app, f"note {n}") for n in range(3)]
    found = retrieve(app, mode="list", limit=2)
    assert ids(found) == written[:0:-1]
    assert all("score" not in result for result in found["results"])
    assert found["meta"] == {"searchMode": "list", "exhaustive": True, "candidates": 2}


def test_keyword_answers_facts_that_share_any_word_with_a_positive_score(app: ApiClient) -> None:
    seat = write(app, {"preference": "a window seat"})
    write(app, "two checked bags")
    found = retrieve(app, mode="keyword", query="Which seat does she want?")
    assert ids(found) == [seat]
    assert found["results"][0]["score"] > 0
    assert found["results"][0]["fact"]["content"] == {"preference": "a window seat"}
    assert found["meta"] == {"searchMode": "keyword", "exhaustive": True, "candidates": 2}


def test_semantic_answers_by_meaning_with_a_cosine(app: ApiClient) -> None:
    pet = write(app, "Her puppy is called Rex")
    write(app, "The invoice was paid in March")
    found = retrieve(app, mode="semantic", query="What is the name of the dog?")
    assert ids(found)[0] == pet
    assert len(found["results"]) == 2
    assert all(-1 <= result["score"] <= 1 for result in found["results"])
    assert found["meta"] == {"searchMode": "exact", "exhaustive": True, "candidates": 2}


def test_both_fuses_the_two_by_rank(app: ApiClient) -> None:
    first = write(app, "The window seat is booked")
    second = write(app, "She sits where she can look outside")
    found = retrieve(app, mode="both", query="window seat")
    assert ids(found) == [first, second]
    assert found["results"][0]["score"] == pytest.approx(2 / 61)
    assert found["results"][1]["score"] == pytest.approx(1 / 62)
    assert found["meta"]["searchMode"] == "keyword+exact"


def test_type_and_partial_scope_narrow_every_mode(app: ApiClient) -> None:
    here = write(app, "window seat", type="seat")
    write(app, "window seat", type="view")
    write(app, "window seat", type="seat", scope={"projectId": "p2"})
    for mode in ("list", "keyword", "semantic", "both"):
        found = retrieve(app, mode=mode, query="window seat", type="seat", scope=SCOPE)
        assert ids(found) == [here], mode


def test_a_superseded_text_is_found_no_more_and_its_replacement_is(app: ApiClient) -> None:
    fact = write(app, "aisle")
    assert app.post(f"/v1/memory/facts/{fact}/supersede", {"content": "window"}).status_code == 200
    assert ids(retrieve(app, mode="keyword", query="aisle")) == []
    found = retrieve(app, mode="keyword", query="window")
    assert ids(found) == [fact]
    assert found["results"][0]["fact"]["version"] == 2


def test_a_deleted_fact_is_found_no_more(app: ApiClient) -> None:
    fact = write(app, "aisle seat")
    assert app.delete(f"/v1/memory/facts/{fact}").status_code == 200
    for mode in ("list", "keyword", "semantic", "both"):
        assert ids(retrieve(app, mode=mode, query="aisle seat")) == []


@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
@pytest.mark.parametrize("query", [None, "", " \n\t "])
def test_a_blank_question_is_refused(app: ApiClient, mode: str, query: str | None) -> None:
    body = {"mode": mode} if query is None else {"mode": mode, "query": query}
    assert refusal(app, **body) == (400, "bad-input")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "bad-input"),
        ({"mode": "fuzzy"}, "bad-input"),
        ({"mode": "list", "limit": 0}, "bad-input"),
        ({"mode": "list", "limit": 201}, "bad-input"),
        ({"mode": "list", "limit": "ten"}, "bad-input"),
        ({"mode": "list", "cursor": "x"}, "unknown-field"),
        ({"mode": "list", "scope": {"project": "p1"}}, "unknown-field"),
        ({"mode": "list", "type": ""}, "bad-input"),
    ],
)
def test_a_malformed_request_is_refused(app: ApiClient, body: dict[str, Any], code: str) -> None:
    assert refusal(app, **body) == (400, code)


def test_another_tenants_name_in_the_scope_is_refused(app: ApiClient) -> None:
    assert refusal(app, mode="list", scope={"tenantId": "globex"}) == (403, "scope-mismatch")
    assert retrieve(app, mode="list", scope={"tenantId": "acme"})["results"] == []


def test_an_unknown_embedding_model_is_refused(app: ApiClient) -> None:
    asked = {"mode": "semantic", "query": "x", "embeddingModel": "nobody-has-it"}
    assert refusal(app, **asked) == (422, "embedding-model-unknown")


@pytest.mark.parametrize("mode", ["semantic", "both"])
def test_without_a_provider_search_by_meaning_is_refused(app: ApiClient, mode: str) -> None:
    with override_settings(KINDMEM_EMBEDDINGS="none"):
        assert refusal(app, mode=mode, query="x") == (422, "semantic-unavailable")


def test_an_idempotency_key_is_accepted_and_ignored(app: ApiClient) -> None:
    first = app.post(URL, {"mode": "list"}, Idempotency_Key="k1")
    fact = write(app, "new")
    second = app.post(URL, {"mode": "list"}, Idempotency_Key="k1")
    assert first.status_code == second.status_code == 200
    assert ids(second.json()) == [fact]


def test_an_auditor_may_search_and_a_key_without_read_may_not(acme: TenantKit) -> None:
    assert acme.client("auditor").post(URL, {"mode": "list"}).status_code == 200
    assert refusal(acme.client("agent", may=["append"]), mode="list") == (403, "permission-denied")


def test_vectors_of_a_model_that_is_gone_are_said_to_be_left_out(app: ApiClient) -> None:
    with provider_registered(StubProvider(model="gone"), as_default=True):
        write(app, "window seat")
    here = write(app, "aisle seat")
    found = retrieve(app, mode="semantic", query="seat")
    assert ids(found) == [here]
    assert found["meta"]["exhaustive"] is False
    assert found["meta"]["modelsUnavailable"] == ["gone"]


@pytest.mark.parametrize("mode", ["semantic", "both"])
def test_a_provider_that_is_down_answers_503_and_no_empty_success(
    app: ApiClient, mode: str
) -> None:
    down = StubProvider(failure=EmbeddingUnavailable("stub", "answered 503"))
    with (
        override_settings(KINDMEM_EMBEDDINGS="none"),
        provider_registered(down, as_default=True),
    ):
        assert refusal(app, mode=mode, query="x") == (503, "unavailable")


def test_a_question_goes_to_no_server_whose_vectors_nobody_has(app: ApiClient) -> None:
    remote = StubProvider(model="remote", is_local=False)
    write(app, "window seat")
    with provider_registered(remote):
        assert len(ids(retrieve(app, mode="semantic", query="seat"))) == 1
    assert remote.asked == []


@pytest.mark.parametrize("query", ["x" * 200_000, "seat " * 200_000, "?" * 100_000, "座" * 100_000])
def test_an_enormous_question_is_cut_and_answered(app: ApiClient, query: str) -> None:
    write(app, "window seat")
    found = retrieve(app, mode="both", query=query)
    assert len(found["results"]) == 1


def test_another_tenants_facts_neither_appear_nor_move_a_score(live_acme: TenantKit) -> None:
    get_provider().embed(["once it is loaded, vectors come with the write"])
    app = live_acme.client("app", projects=["p1"])
    for content in ("a window seat", "an aisle seat", "a vegan meal"):
        write(app, content)
    alone = {
        mode: retrieve(app, mode=mode, query="vegan window seat")
        for mode in ("list", "keyword", "semantic", "both")
    }
    other = make_tenant().client("app", projects=["p1"])
    for n in range(12):
        write(other, f"vegan window canary{n}")
    for mode, before in alone.items():
        assert retrieve(app, mode=mode, query="vegan window seat") == before
    assert ids(retrieve(app, mode="keyword", query="canary1 canary2")) == []


def test_a_reader_without_the_container_finds_nothing_of_it(
    acme: TenantKit, app: ApiClient
) -> None:
    write(app, "window seat")
    outsider = acme.client("agent", projects=["elsewhere"])
    for mode in ("list", "keyword", "semantic", "both"):
        assert ids(retrieve(outsider, mode=mode, query="window seat")) == []
        assert ids(retrieve(outsider, mode=mode, query="window seat", scope=SCOPE)) == []
