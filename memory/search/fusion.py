"""Two rankings made one: reciprocal rank fusion, the sum of 1 / (60 + rank).

Ranks alone count, because an unbounded BM25 score and a cosine have no common scale. Source: Cormack, Clarke and Büttcher,
"Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009.
"""

from collections.abc import Sequence

from memory.search.found import Hit

K = 60
LEAST_DEPTH = 50


def depth_for(limit: int) -> int:
    """How deep each ranking is read: a fact that is middling in both may beat one that is good in one."""
    return max(2 * limit, LEAST_DEPTH)


def fuse(rankings: Sequence[Sequence[Hit]], limit: int) -> list[Hit]:
    """The `limit` best of all rankings together; equal sums newest first. A fact that two rankings have counts once."""
    known: dict[str, Hit] = {}
    sums: dict[str, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            known.setdefault(hit.fact_id, hit)
            sums[hit.fact_id] = sums.get(hit.fact_id, 0.0) + 1 / (K + rank)
    fused = [Hit(fact_id, total, known[fact_id].created_at) for fact_id, total in sums.items()]
    return sorted(fused, key=lambda hit: hit.order, reverse=True)[:limit]
