"""The five methods of the Python binding, and the typed errors they answer."""

from typing import Any, get_args

import pytest
from django.db import OperationalError
from django.test import override_settings

from memory import binding as module
from memory.binding import (
    AppendLogInput,
    Err,
    ErrorCode,
    ListFactsInput,
    MemoryBinding,
    Ok,
    ReadLogInput,
    SearchByKeywordInput,
    SearchBySemanticInput,
)
from memory.embeddings.provider import (
    EmbeddingBadAnswer,
    EmbeddingError,
    EmbeddingTimeout,
    EmbeddingUnavailable,
    provider_registered,
)
from tests.builders import TenantKit
from tests.search.providers import StubProvider


@pytest.fixture
def binding(acme: TenantKit) -> MemoryBinding:
    return MemoryBinding.for_token(acme.token("agent", projects=["p1"]))


def write_fact(acme: TenantKit, **body: Any) -> dict[str, Any]:
    answer = acme.client("app", projects=["p1", "p2"]).post(
        "/v1/memory/facts", {"type": "acme.clause", "scope": {"projectId": "p1"}, **body}
    )
    assert answer.status_code == 201, answer.content
    return answer.json()


def value(result: Any) -> Any:
    assert isinstance(result, Ok), result
    return result.value


def error(result: Any) -> Any:
    assert isinstance(result, Err), result
    return result.error


def test_an_entry_is_appended_and_read_back(acme: TenantKit, binding: MemoryBinding) -> None:
    given = AppendLogInput(
        tenant_id="acme",
        run_id="r1",
        kind="retrieval",
        scope={"tenantId": "acme", "projectId": "p1"},
        actor="acme.clause-finder",
        payload={"query": "liability", "factIds": []},
    )
    first = value(binding.append_log(given))
    second = value(binding.append_log(given))
    assert [first["sequence"], second["sequence"]] == [0, 1]
    assert second["prevHash"] == first["entryHash"]
    assert value(binding.read_log(ReadLogInput("acme", "r1"))) == [first, second]
    assert value(binding.read_log(ReadLogInput("acme", "r1", since_sequence=1))) == [second]
    http = acme.client("agent", projects=["p1"]).get("/v1/memory/runs/r1/log").json()["data"]
    assert http == [first, second]


def test_an_append_with_the_same_id_and_content_answers_the_stored_entry(
    binding: MemoryBinding,
) -> None:
    given = AppendLogInput(
        "acme", "r1", "tool-call", {"projectId": "p1"}, id="e1", payload={"n": 1}
    )
    assert value(binding.append_log(given)) == value(binding.append_log(given))
    taken = AppendLogInput(
        "acme", "r1", "tool-call", {"projectId": "p1"}, id="e1", payload={"n": 2}
    )
    assert error(binding.append_log(taken)).rule == "id-taken"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"kind": "poem"}, "bad-input"),
        ({"scope": {"projectid": "p1"}}, "unknown-field"),
        ({"scope": {"projectId": "p2"}}, "permission-denied"),
        ({"scope": {"tenantId": "globex"}}, "scope-mismatch"),
        ({"payload": float("nan")}, "bad-input"),
        ({"payload": {1: 2}}, "bad-input"),
        ({"payload": "\x00"}, "bad-input"),
        ({"payload": 2**53}, "bad-input"),
        ({"run_id": ""}, "bad-input"),
        ({"run_id": "kindmem.governance"}, "run-reserved"),
        ({"tenant_id": "globex"}, "bad-input"),
    ],
)
def test_a_bad_entry_is_a_typed_error(
    binding: MemoryBinding, change: dict[str, Any], rule: str
) -> None:
    given = {
        "tenant_id": "acme",
        "run_id": "r1",
        "kind": "tool-call",
        "scope": {"projectId": "p1"},
        **change,
    }
    failure = error(binding.append_log(AppendLogInput(**given)))
    assert (failure.code, failure.rule) == ("invalid-log-entry", rule)


def test_an_unknown_run_is_log_not_found(binding: MemoryBinding) -> None:
    assert error(binding.read_log(ReadLogInput("acme", "none"))).code == "log-not-found"


def test_facts_are_listed_by_type_and_partial_scope(
    acme: TenantKit, binding: MemoryBinding
) -> None:
    fact = write_fact(acme, content={"heading": "Liability"})
    write_fact(acme, content={"heading": "Hidden"}, scope={"projectId": "p2"})
    write_fact(acme, content={"other": 1}, type="acme.other")
    listed = value(
        binding.list_facts(ListFactsInput("acme", type="acme.clause", scope={"projectId": "p1"}))
    )
    assert listed == [fact]
    assert value(binding.list_facts(ListFactsInput("acme", scope={"projectId": "p2"}))) == []
    assert error(binding.list_facts(ListFactsInput("acme", limit=0))).code == "invalid-fact"


def test_latest_only_off_lists_every_revision(acme: TenantKit, binding: MemoryBinding) -> None:
    fact = write_fact(acme, content={"n": 1})
    acme.client("app", projects=["p1"]).post(
        f"/v1/memory/facts/{fact['id']}/supersede", {"content": {"n": 2}}
    )
    latest = value(binding.list_facts(ListFactsInput("acme")))
    assert [one["content"] for one in latest] == [{"n": 2}]
    every = value(binding.list_facts(ListFactsInput("acme", latest_only=False)))
    assert [one["content"] for one in every] == [{"n": 2}, {"n": 1}]


def test_both_searches_find_a_fact_with_scores(acme: TenantKit, binding: MemoryBinding) -> None:
    fact = write_fact(
        acme, content={"text": "The supplier's liability is capped at one year of fees."}
    )
    write_fact(acme, content={"text": "Invoices are due within thirty days."})
    (hit,) = value(
        binding.search_by_keyword(SearchByKeywordInput("acme", "liability cap", top_k=1))
    )
    assert hit.fact["id"] == fact["id"]
    assert hit.score > 0
    hits = value(
        binding.search_by_semantic(
            SearchBySemanticInput("acme", "how much can we claim for damages?")
        )
    )
    assert hits[0].fact["id"] == fact["id"]
    assert -1 <= hits[0].score <= 1
    unknown = SearchBySemanticInput("acme", "x", embedding_model="none-such")
    assert error(binding.search_by_semantic(unknown)).code == "embedding-model-missing"
    assert (
        error(binding.search_by_keyword(SearchByKeywordInput("acme", "  "))).code == "invalid-fact"
    )


def test_the_error_codes_are_those_of_the_memory_contract_and_of_the_embedding_errors() -> None:
    of_the_contract = {
        "invalid-log-entry",
        "invalid-fact",
        "fact-not-found",
        "log-not-found",
        "refresh-handler-missing",
        "retention-violation",
        "persistence-error",
    }
    kinds = [EmbeddingError, *EmbeddingError.__subclasses__()]
    kinds += EmbeddingUnavailable.__subclasses__()
    assert set(get_args(ErrorCode)) == of_the_contract | {kind.code for kind in kinds}


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (EmbeddingUnavailable("stub", "answered 503"), "embedding-unavailable"),
        (EmbeddingTimeout("stub", "not there in time"), "embedding-timeout"),
        (EmbeddingBadAnswer("stub", "answered no vector"), "embedding-bad-answer"),
    ],
)
def test_a_model_that_does_not_answer_is_said_by_its_own_code(
    binding: MemoryBinding, failure: EmbeddingError, code: str
) -> None:
    down = StubProvider(failure=failure)
    with (
        override_settings(KINDMEM_EMBEDDINGS="none"),
        provider_registered(down, as_default=True),
    ):
        assert error(binding.search_by_semantic(SearchBySemanticInput("acme", "x"))).code == code
    with override_settings(KINDMEM_EMBEDDINGS="none"):
        failed = error(binding.search_by_semantic(SearchBySemanticInput("acme", "x")))
    assert (failed.code, failed.rule) == ("embedding-model-missing", "semantic-unavailable")


def test_a_database_that_fails_is_a_persistence_error(
    binding: MemoryBinding, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **more: Any) -> Any:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(module, "list_facts", fails)
    failed = error(binding.list_facts(ListFactsInput("acme")))
    assert failed.code == "persistence-error"
    assert "closed the connection" not in failed.message


def test_every_method_names_its_tenant_and_refuses_any_other(binding: MemoryBinding) -> None:
    for result in (
        binding.list_facts(ListFactsInput("globex")),
        binding.search_by_keyword(SearchByKeywordInput("globex", "x")),
        binding.search_by_semantic(SearchBySemanticInput("globex", "x")),
        binding.read_log(ReadLogInput("globex", "r1")),
        binding.append_log(AppendLogInput("globex", "r1", "tool-call", {"projectId": "p1"})),
    ):
        failed = error(result)
        assert failed.code in ("invalid-fact", "invalid-log-entry")
        assert failed.details["issues"][0]["path"] == "/tenant_id"


def test_what_the_key_may_not_is_refused_as_over_http(acme: TenantKit) -> None:
    reads = MemoryBinding.for_token(acme.token("agent", projects=["p1"], may=["read"]))
    appends = MemoryBinding.for_token(acme.token("agent", projects=["p1"], may=["append"]))
    given = AppendLogInput("acme", "r1", "tool-call", {"projectId": "p1"})
    assert error(reads.append_log(given)).rule == "permission-denied"
    assert error(appends.list_facts(ListFactsInput("acme"))).rule == "permission-denied"
    assert error(appends.read_log(ReadLogInput("acme", "r1"))).rule == "permission-denied"
