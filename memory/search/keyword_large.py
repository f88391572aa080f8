"""Keyword search for a caller who sees very many facts: the same ranking, without reading every posting of common words.

How many facts hold a word is counted for rare words and estimated from a sample for common ones. The best facts are first looked
for among those that hold one of the telling words; what the common words add is looked up for these alone. That is the whole
answer when the last of the best scores at least what common words alone could (the idea of MaxScore); otherwise every word is
read. Source: Turtle and Flood, "Query evaluation: strategies and optimizations", 1995.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.search.bm25 import K1, B
from memory.search.found import Hit

_RARE = 1_000
_RARE_IN_SAMPLE = 10
_TELLING_POSTINGS = 5_000

# How many postings a lexeme has in the whole tenant, at most _RARE.
_COUNT = """
SELECT (SELECT count(*) FROM (
  SELECT FROM posting p WHERE p.tenant_id = %(tenant)s::uuid AND p.lexeme = q.lexeme LIMIT %(rare)s::int
) capped) FROM unnest(%(lexemes)s::text[]) WITH ORDINALITY AS q (lexeme, place) ORDER BY q.place
"""

# What a posting adds to the score of its document, in steps. Numbers without a type would make it numeric, ten times slower.
ADDS = f"""({{idf}} * frequency * {K1 + 1}::float8 / (frequency + {K1}::float8 * ({1 - B}::float8 + {B}::float8 * length
      / {{mean_length}})) / %(step)s::float8)::int"""
_MEAN_LENGTH = "%(mean_length)s::float8"
_TELLING_ADDS = ADDS.format(idf="(SELECT idf FROM weight)[place]", mean_length=_MEAN_LENGTH)
_COMMON_ADDS = ADDS.format(
    idf='(%(common_idf)s::float8[])[array_position(%(common)s::text[] COLLATE "C", lexeme)]',
    mean_length=_MEAN_LENGTH,
)

# An idf that is not given is counted. `kept`: what the common words could still lift among the best.
_SEARCH = f"""
WITH hit AS MATERIALIZED (
  SELECT array_position(%(telling)s::text[] COLLATE "C", p.lexeme) AS place, p.document, p.length, p.frequency
  FROM posting p JOIN fact_document d ON d.tenant_id = p.tenant_id AND d.number = p.document
  WHERE p.tenant_id = %(tenant)s::uuid AND p.lexeme = ANY (%(telling)s::text[]) AND {{visible}}
), weight AS MATERIALIZED (
  SELECT array_agg(coalesce(g.idf, ln(1 + (greatest(%(facts)s::float8, h.facts) - h.facts + 0.5) / (h.facts + 0.5)), 0)
                   ORDER BY g.place) AS idf
  FROM unnest(%(idf)s::float8[]) WITH ORDINALITY AS g (idf, place)
  LEFT JOIN (SELECT place, count(*)::float8 AS facts FROM hit GROUP BY place) h ON h.place = g.place
), part AS MATERIALIZED (
  SELECT document, sum({_TELLING_ADDS}) AS score FROM hit GROUP BY document
), kept AS MATERIALIZED (
  SELECT document, score FROM part
  WHERE score >= coalesce((SELECT score FROM part ORDER BY score DESC OFFSET %(limit)s::int - 1 LIMIT 1), 0)
                 - %(common_most)s::float8 / %(step)s::float8
), rest AS MATERIALIZED (
  SELECT document, sum({_COMMON_ADDS}) AS score
  FROM posting p
  WHERE p.tenant_id = %(tenant)s::uuid AND p.lexeme = ANY (%(common)s::text[])
    AND p.document = ANY ((SELECT array_agg(document) FROM kept)::bigint[])
  GROUP BY document
), best AS (
  SELECT document, sum(score) AS score
  FROM (SELECT document, score FROM kept UNION ALL SELECT document, score FROM rest) added GROUP BY document
  ORDER BY score DESC FETCH FIRST (%(limit)s::int) ROWS WITH TIES
)
SELECT d.fact_id, b.score * %(step)s::float8, d.created_at
FROM best b JOIN fact_document d ON d.tenant_id = %(tenant)s::uuid AND d.number = b.document
ORDER BY b.score DESC, d.created_at DESC, d.fact_id DESC LIMIT %(limit)s::int
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of all facts that the caller sees: about how many, how long, and of `taken` of them who hold a lexeme."""

    facts: int
    mean_length: float
    counts: Mapping[str, int]
    taken: int


def search_large(condition: str, given: Mapping[str, Any], sample: Sample) -> list[Hit]:
    """The best facts, best first. `condition`: SQL over `fact_document d`; `given`: its parameters, lexemes, limit, step."""
    lexemes: list[str] = given["lexemes"]
    limit: int = given["limit"]
    counted = _counts(given)
    idf = {
        lexeme: _estimated_idf(sample, lexeme)
        for lexeme in lexemes
        if counted[lexeme] >= _RARE and sample.counts[lexeme] >= _RARE_IN_SAMPLE
    }
    # Rarest first; a word whose frequency is to be counted is read in any case.
    ordered = sorted(lexemes, key=lambda lexeme: (-idf.get(lexeme, math.inf), lexeme))
    telling: list[str] = []
    postings = 0.0
    for lexeme in ordered:
        postings += max(counted[lexeme], sample.facts * sample.counts[lexeme] / sample.taken)
        if telling and lexeme in idf and postings > _TELLING_POSTINGS:
            break
        telling.append(lexeme)
    hits = _search(condition, given, sample, ordered, len(telling), idf)
    floor = hits[-1].score if len(hits) == limit else 0.0
    enough = len(telling)
    while enough < len(ordered) and _most(ordered[enough:], idf) > floor:
        enough += 1
    if enough > len(telling):
        # More words read never lower the last of the best, so this is the whole answer.
        hits = _search(condition, given, sample, ordered, enough, idf)
    return hits


def _most(lexemes: list[str], idf: Mapping[str, float]) -> float:
    """What a text scores less than by these lexemes, however often it holds them."""
    return sum(idf[lexeme] * (K1 + 1) for lexeme in lexemes)


def _estimated_idf(sample: Sample, lexeme: str) -> float:
    holding = sample.facts * sample.counts[lexeme] / sample.taken
    return math.log(1 + (sample.facts - holding + 0.5) / (holding + 0.5))


def _counts(given: Mapping[str, Any]) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {"tenant": given["tenant"], "lexemes": given["lexemes"], "rare": _RARE},
        )
        return dict(zip(given["lexemes"], [row[0] for row in cursor.fetchall()], strict=True))


def _search(
    condition: str,
    given: Mapping[str, Any],
    sample: Sample,
    ordered: list[str],
    telling: int,
    idf: Mapping[str, float],
) -> list[Hit]:
    """The best of the facts that hold one of the first `telling` lexemes."""
    common = ordered[telling:]
    parameters = {
        **{name: value for name, value in given.items() if name != "lexemes"},
        "telling": ordered[:telling],
        "idf": [idf.get(lexeme) for lexeme in ordered[:telling]],
        "common": common,
        "common_idf": [idf[lexeme] for lexeme in common],
        "common_most": _most(common, idf),
        "facts": sample.facts,
        "mean_length": sample.mean_length,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SEARCH.format(visible=condition), parameters)
        return [Hit(*row) for row in cursor.fetchall()]
