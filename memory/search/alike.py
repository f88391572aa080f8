"""An answer holds each statement once: facts that say the same about the same (`wording.py`) take one place together.

A statement ranks by its best fact and gains nothing by being repeated. The fact that is answered for it is the most trusted one,
verified before asserted before unverified, of equal ones the newest: so no copy stands in for what a person checked. `limit`
statements are found where so many are there: a ranking that is crowded with copies is read deeper.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.search.found import Found, Hit
from memory.search.visible import Filters, visible

# How far a ranking is read past the limit at first, and how much deeper each time when copies took the places.
_BEYOND = 20
_DEEPER = 4

_WORDINGS = """
SELECT f.id, f.wording FROM fact f
WHERE f.tenant_id = %(tenant)s::uuid AND f.id = ANY (%(ids)s::text[]) AND f.wording IS NOT NULL
"""
_SPEAKERS = """
SELECT DISTINCT ON (f.wording) f.wording, f.id, f.created_at, count(*) OVER (PARTITION BY f.wording) - 1
FROM fact f
JOIN fact_revision r ON r.tenant_id = f.tenant_id AND r.fact_id = f.id AND r.version = f.current_version
WHERE {visible} AND f.deleted_at IS NULL AND f.wording = ANY (%(wordings)s::bytea[])
  AND (%(model)s::text IS NULL OR EXISTS (
    SELECT FROM fact_embedding e WHERE e.tenant_id = f.tenant_id AND e.fact_id = f.id AND e.model = %(model)s::text))
ORDER BY f.wording, array_position(ARRAY['verified', 'asserted', 'unverified'], r.trust), f.created_at DESC, f.id DESC
"""


@dataclass(slots=True)
class Statements:
    """What is known of the facts that rankings hold: which say the same."""

    tenant: Any
    of_fact: dict[str, bytes] = field(default_factory=dict)

    def search(self, search: Callable[[int], Found], limit: int) -> Found:
        """The best fact of each of the `limit` best statements, best first. `search`: a ranking read to a depth."""
        depth = limit + _BEYOND
        while True:
            found = search(depth)
            self._look_up([hit.fact_id for hit in found.hits])
            best: dict[str | bytes, Hit] = {}
            for hit in found.hits:
                best.setdefault(self.of_fact.get(hit.fact_id, hit.fact_id), hit)
            if len(best) >= limit or len(found.hits) < depth:
                return replace(found, hits=list(best.values())[:limit])
            depth *= _DEEPER

    def _look_up(self, fact_ids: Sequence[str]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_WORDINGS, {"tenant": self.tenant, "ids": list(fact_ids)})
            self.of_fact |= {row[0]: bytes(row[1]) for row in cursor.fetchall()}


def spoken_for(
    principal: Principal,
    found: Sequence[Found],
    statements: Statements,
    *,
    filters: Filters,
    model: str | None,
) -> tuple[list[Found], Mapping[str, int]]:
    """The same rankings with the fact that speaks for each statement, and how many others say the same as it.

    model: only facts with a vector of this model.
    """
    said = {
        statements.of_fact[hit.fact_id]
        for one in found
        for hit in one.hits
        if hit.fact_id in statements.of_fact
    }
    condition, parameters = visible(principal, filters, "f")
    with connection.cursor() as cursor:
        cursor.execute(
            _SPEAKERS.format(visible=condition),
            {**parameters, "wordings": list(said), "model": model},
        )
        speakers = {bytes(row[0]): row[1:] for row in cursor.fetchall()}

    def spoken(hit: Hit) -> Hit:
        speaker = speakers.get(statements.of_fact.get(hit.fact_id, b""))
        return replace(hit, fact_id=speaker[0], created_at=speaker[1]) if speaker else hit

    rankings = [
        replace(one, hits=sorted(map(spoken, one.hits), key=lambda hit: hit.order, reverse=True))
        for one in found
    ]
    return rankings, {fact_id: others for fact_id, _, others in speakers.values() if others}
