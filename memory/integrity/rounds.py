"""Which runs a round of sealing looks at: those with entries since the round before, and now and then all.

Kept in the worker's memory only: a new worker begins with all, so nothing is ever missed, only looked at later.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

LOOK_BACK: Final = timedelta(minutes=2)
"""Longer than a transaction may take: an entry's instant is taken before its commit."""

ALL_EVERY_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class _Looked:
    at: datetime
    at_all: float


class Rounds:
    """Remembers for each tenant when it was looked at."""

    def __init__(self) -> None:
        self._looked: dict[UUID, _Looked] = {}

    def since(self, tenant_id: UUID) -> datetime | None:
        """From which instant on runs are looked at; None for all."""
        looked = self._looked.get(tenant_id)
        if looked is None or time.monotonic() - looked.at_all > ALL_EVERY_SECONDS:
            return None
        return looked.at - LOOK_BACK

    def took(self, tenant_id: UUID, since: datetime | None, looked_at: datetime) -> None:
        """A round is over that looked from `since` on and began at `looked_at`."""
        looked = self._looked.get(tenant_id)
        at_all = time.monotonic() if since is None or looked is None else looked.at_all
        self._looked[tenant_id] = _Looked(looked_at, at_all)


class Turns:
    """Goes round the tenants: where a turn ends early, the next one begins after the tenant that it reached."""

    def __init__(self) -> None:
        self._reached = ""

    def turn(self, tenants: Sequence[tuple[UUID, str]]) -> Iterator[tuple[UUID, str]]:
        """Each (id, slug) once."""
        last = self._reached
        for tenant in sorted(tenants, key=lambda one: (one[1] <= last, one[1])):
            self._reached = tenant[1]
            yield tenant
