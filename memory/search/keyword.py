"""Keyword search: any word of the question is a match, and BM25 says how good.

The rule is that of `bm25.py`, told in SQL: how many facts there are, how many hold a word and how long they are on average is
counted among the facts that the caller may see and the filters let through, so other people's facts never move a rank. What one
word adds is rounded to a fixed step and summed as an integer: the same facts give the same scores in whatever order rows come.
"""

from typing import Any

from django.db import connection

from memory.access import Principal
from memory.search.analysis import analyse_query
from memory.search.bm25 import K1, B
from memory.search.found import Found, Hit
from memory.search.index import index_language
from memory.search.visible import Filters, visible

_STEP = 2.0**-24

_SEARCH = f"""
WITH seen AS MATERIALIZED (
  SELECT d.number, d.length, d.fact_id AS id, d.created_at FROM fact_document d WHERE {{visible}}
), total AS MATERIALIZED (
  SELECT count(*)::float8 AS facts, avg(length)::float8 AS mean_length FROM seen
), hit AS MATERIALIZED (
  SELECT p.lexeme, p.frequency::float8 AS frequency, p.length::float8 AS length, s.id, s.created_at
  FROM posting p JOIN seen s ON s.number = p.document
  WHERE p.tenant_id = %(tenant)s::uuid AND p.lexeme = ANY (%(lexemes)s::text[])
), weight AS MATERIALIZED (
  SELECT h.lexeme, ln(1 + (t.facts - count(*) + 0.5) / (count(*) + 0.5)) AS idf
  FROM hit h, total t GROUP BY h.lexeme, t.facts
), best AS (
  SELECT h.id, h.created_at,
         sum((w.idf * h.frequency * ({K1} + 1)
              / (h.frequency + {K1} * (1 - {B} + {B} * h.length / t.mean_length)) / {_STEP})::int) AS score
  FROM hit h JOIN weight w ON w.lexeme = h.lexeme, total t
  GROUP BY h.id, h.created_at
  ORDER BY score DESC, h.created_at DESC, h.id DESC
  LIMIT %(limit)s::int
)
SELECT b.id, b.score * {_STEP}::float8, b.created_at, t.facts::bigint
FROM total t LEFT JOIN best b ON true
ORDER BY b.score DESC, b.created_at DESC, b.id DESC
"""


def search_by_keyword(
    principal: Principal, *, question: str, filters: Filters, limit: int
) -> Found:
    """The `limit` best facts that hold any word of the question; equal scores newest first."""
    lexemes = analyse_query(question, index_language(principal.search_language))
    condition, parameters = visible(principal, filters, "d")
    given: dict[str, Any] = {**parameters, "lexemes": lexemes, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(_SEARCH.format(visible=condition), given)
        rows = cursor.fetchall()
    hits = [Hit(row[0], row[1], row[2]) for row in rows if row[0] is not None]
    return Found(hits=hits, how="keyword", candidates=rows[0][3])
