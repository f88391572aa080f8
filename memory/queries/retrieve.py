"""Retrieval over the facts that the caller may see: listed, by keyword, by meaning, or both fused by rank.

It opens its own transactions, because a question may have to be embedded by another server, and nothing waits for one while it
holds a connection. `meta` says how the search went: which way, whether anything can be missing, among how many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from memory.access import Principal, Scope, own_scope
from memory.embeddings.provider import EmbeddingError, available_models
from memory.errors import BadInput, EmbeddingModelUnknown, SemanticUnavailable, Unavailable
from memory.fact_shape import FactView
from memory.queries.facts import FactFilters, facts_by_ids, list_facts
from memory.search.alike import Statements, spoken_for
from memory.search.found import Found
from memory.search.fusion import depth_for, fuse
from memory.search.keyword import search_by_keyword
from memory.search.semantic import models_in_use, question_vectors, search_by_meaning
from memory.search.visible import Filters, pin_plans
from memory.tenancy import tenant_context

Mode = Literal["list", "keyword", "semantic", "both"]
MODES: tuple[Mode, ...] = ("list", "keyword", "semantic", "both")
DEFAULT_LIMIT = 10
MOST_RESULTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """What is asked. `scope` is partial. `embedding_model`: search facts of this model only."""

    mode: Mode
    query: str | None = None
    type: str | None = None
    scope: Scope = field(default_factory=dict)
    limit: int = DEFAULT_LIMIT
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Facts, best first, with their scores (None for `list`), and how the search went.

    alike: how many other facts say the same as one of them and were left out for it, where there are any.
    """

    results: Sequence[tuple[FactView, float | None]]
    meta: Mapping[str, Any]
    alike: Mapping[str, int] = field(default_factory=dict)


def retrieve(principal: Principal, asked: Retrieval) -> Retrieved:
    """The `limit` best facts that each say something else, exactly as many when that many are there.

    Raises BadInput, ScopeMismatch, EmbeddingModelUnknown, SemanticUnavailable; Unavailable when the model doesn't answer.
    """
    scope = own_scope(principal, asked.scope)
    if asked.mode == "list":
        return _listed(principal, asked, scope)
    question = asked.query or ""
    if not question.strip():
        raise BadInput.at("/query", f"must not be blank with mode {asked.mode}")
    filters = Filters(type=asked.type, scope=scope)
    vectors: dict[str, list[float]] = {}
    if asked.mode != "keyword":
        models = _models_to_ask(principal, asked.embedding_model)
        try:
            vectors = question_vectors(question, models)
        except EmbeddingError as error:
            raise Unavailable from error
    depth = depth_for(asked.limit) if asked.mode == "both" else asked.limit
    with tenant_context(principal.tenant_id):
        pin_plans()
        found: list[Found] = []
        unsearched: list[str] = []
        statements = Statements(principal.tenant_id)
        if asked.mode != "semantic":
            by_keyword = partial(search_by_keyword, principal, question=question, filters=filters)
            found.append(statements.search(lambda deep: by_keyword(limit=deep), depth))
        if asked.mode != "keyword":
            by_meaning = partial(search_by_meaning, principal, vectors=vectors, filters=filters)
            found.append(statements.search(lambda deep: by_meaning(limit=deep), depth))
            if asked.embedding_model is None:
                used = models_in_use(principal.tenant_id)
                unsearched = [model for model in used if model not in vectors]
        found, alike = spoken_for(
            principal, found, statements, filters=filters, model=asked.embedding_model
        )
        hits = fuse([one.hits for one in found], asked.limit) if len(found) > 1 else found[0].hits
        facts = {fact.id: fact for fact in facts_by_ids(principal, [hit.fact_id for hit in hits])}
    results = [(facts[hit.fact_id], hit.score) for hit in hits if hit.fact_id in facts]
    alike = {fact.id: alike[fact.id] for fact, _ in results if fact.id in alike}
    return Retrieved(results, _meta(found, unsearched, sum(alike.values())), alike)


def _listed(principal: Principal, asked: Retrieval, scope: Scope) -> Retrieved:
    with tenant_context(principal.tenant_id):
        facts = list_facts(principal, FactFilters(type=asked.type, scope=scope), limit=asked.limit)
    meta = {"searchMode": "list", "exhaustive": True, "candidates": len(facts)}
    return Retrieved([(fact, None) for fact in facts], meta)


def _models_to_ask(principal: Principal, wanted: str | None) -> list[str]:
    """The models that embed the question: those that facts have vectors of, so that no other server reads it."""
    available = available_models()
    if not available:
        raise SemanticUnavailable
    if wanted is not None:
        if wanted not in available:
            raise EmbeddingModelUnknown(model=wanted)
        return [wanted]
    if len(available) == 1:
        return list(available)
    with tenant_context(principal.tenant_id):
        used = models_in_use(principal.tenant_id)
    return [model for model in available if model in used] or [available[0]]


def _meta(found: list[Found], unsearched: list[str], collapsed: int) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "searchMode": "+".join(one.how for one in found),
        "exhaustive": all(one.exhaustive for one in found) and not unsearched,
        "candidates": max(one.candidates for one in found),
    }
    sampled = [one.sampled for one in found if one.sampled is not None]
    if sampled:
        meta["sampled"] = sampled[0]
    if collapsed:
        meta["collapsed"] = collapsed
    if unsearched:
        meta["modelsUnavailable"] = unsearched
    return meta
