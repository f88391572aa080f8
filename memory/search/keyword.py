"""Keyword search: any word of the question is a match, and BM25 says how good.

The rule is that of `bm25.py`, told in SQL: how many facts there are, how many hold a word and how long they are on average is
counted among the facts that the caller may see and the filters let through, so other people's facts never move a rank. Up to
EXACT_TO facts all of that is exact. For a caller who sees more, `keyword_large.py` estimates it from the SAMPLE facts that are
looked at here first. Which facts match never depends on it.

What one word adds is rounded to a fixed step and summed as an integer: the same facts give the same scores in whatever order
rows come. No join chooses the plan: an index condition on the seen facts' numbers does well for few and for many.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.search.analysis import analyse_query
from memory.search.found import Found, Hit
from memory.search.index import NUMBER_BITS, index_language
from memory.search.keyword_large import ADDS, Sample, search_large
from memory.search.visible import Filters, visible

EXACT_TO = 20_000
SAMPLE = 2_000
# The estimate is off by 2.2 % (one standard deviation): above this there surely are more than EXACT_TO.
_SURELY_LARGE = 25_000

# `most` is written out, so that a plan is made for it. `first`: the facts with the smallest numbers, or any.
# A lexeme's part of a score is below 2^7, so the integer is below 2^31.
_ADDS_HERE = ADDS.format(
    idf="(SELECT idf FROM weight)[place]", mean_length="(SELECT mean_length FROM total)"
)
_SEARCH = f"""
WITH seen AS MATERIALIZED (
  SELECT d.number, d.length FROM fact_document d WHERE {{visible}} {{first}} LIMIT {{most}}
), total AS MATERIALIZED (
  SELECT count(*) AS facts, avg(length)::float8 AS mean_length, max(number) AS last, array_agg(number) AS numbers FROM seen
), hit AS MATERIALIZED (
  SELECT array_position(%(lexemes)s::text[] COLLATE "C", p.lexeme) AS place, p.document, p.length, p.frequency
  FROM posting p
  WHERE p.tenant_id = %(tenant)s::uuid AND p.lexeme = ANY (%(lexemes)s::text[]) AND {{among}}
), held AS MATERIALIZED (
  SELECT array_agg(coalesce(h.facts, 0) ORDER BY q.place) AS counts
  FROM generate_subscripts(%(lexemes)s::text[], 1) AS q (place)
  LEFT JOIN (SELECT place, count(*) AS facts FROM hit GROUP BY place) h ON h.place = q.place
), weight AS MATERIALIZED (
  SELECT array_agg(ln(1 + (t.facts - c.facts + 0.5::float8) / (c.facts + 0.5::float8)) ORDER BY c.place) AS idf
  FROM total t, unnest((SELECT counts FROM held)) WITH ORDINALITY AS c (facts, place)
), best AS (
  SELECT document, sum({_ADDS_HERE}) AS score
  FROM hit WHERE (SELECT facts FROM total) < {{most}}
  GROUP BY document ORDER BY score DESC FETCH FIRST (%(limit)s::int) ROWS WITH TIES
)
SELECT t.facts, t.mean_length, t.last, (SELECT counts FROM held), b.fact_id, b.score * %(step)s::float8, b.created_at
FROM total t LEFT JOIN (
  SELECT d.fact_id, b.score, d.created_at
  FROM best b JOIN fact_document d ON d.tenant_id = %(tenant)s::uuid AND d.number = b.document
) b ON true
ORDER BY b.score DESC, b.created_at DESC, b.fact_id DESC LIMIT %(limit)s::int
"""
# Before PostgreSQL 17 a second array in an index condition costs one descent for each pair of values.
_AMONG = "p.document = ANY ((SELECT numbers FROM total)::bigint[])"
_AMONG_BEFORE_17 = "(p.document IN (SELECT number FROM seen)) IS TRUE"

STEP = 2.0**-24


@dataclass(frozen=True, slots=True)
class _Answer:
    """`facts` is below what was asked for at most: all were seen, and `hits` are the answer."""

    facts: int
    mean_length: float | None
    last: int | None
    counts: list[int]
    hits: list[Hit]


def search_by_keyword(
    principal: Principal, *, question: str, filters: Filters, limit: int
) -> Found:
    """The `limit` best facts that hold any word of the question; equal scores newest first."""
    lexemes = analyse_query(question, index_language(principal.search_language))
    if not lexemes:
        return Found(hits=[], how="keyword", candidates=0)
    condition, parameters = visible(principal, filters, "d")
    given = {**parameters, "lexemes": lexemes, "limit": limit, "step": STEP}
    few = _search(condition, given, first="ORDER BY d.number", most=SAMPLE)
    if few.facts < SAMPLE:
        return Found(hits=few.hits, how="keyword", candidates=few.facts)
    # The n-th smallest of random numbers says how many there are: (n - 1) / (its place in their range).
    # Source: Bar-Yossef et al., "Counting distinct elements in a data stream", 2002.
    facts = round((SAMPLE - 1) * 2**NUMBER_BITS / max(few.last or 0, 1))
    if facts < _SURELY_LARGE:
        every = _search(condition, given, first="", most=EXACT_TO + 1)
        if every.facts <= EXACT_TO:
            return Found(hits=every.hits, how="keyword", candidates=every.facts)
    sample = Sample(
        facts, few.mean_length or 0.0, dict(zip(lexemes, few.counts, strict=True)), SAMPLE
    )
    hits = search_large(condition, given, sample)
    return Found(hits=hits, how="keyword", candidates=facts, sampled=SAMPLE)


def _search(condition: str, given: dict[str, Any], *, first: str, most: int) -> _Answer:
    modern = connection.pg_version >= 170000  # type: ignore[attr-defined]  # PostgreSQL's connection
    statement = _SEARCH.format(
        visible=condition, first=first, most=most, among=_AMONG if modern else _AMONG_BEFORE_17
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        rows = cursor.fetchall()
    hits = [Hit(row[4], row[5], row[6]) for row in rows if row[4] is not None]
    facts, mean_length, last, counts = rows[0][:4]
    return _Answer(facts, mean_length, last, counts, hits)
