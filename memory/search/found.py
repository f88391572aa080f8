"""What a search answers, whichever way it searched."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Hit:
    """One fact. `score` is higher for better; of equal ones the newer fact comes first."""

    fact_id: str
    score: float
    created_at: datetime

    @property
    def order(self) -> tuple[float, datetime, str]:
        """Sorts hits worst first."""
        return (self.score, self.created_at, self.fact_id)


@dataclass(frozen=True, slots=True)
class Found:
    """`hits` best first. `candidates`: how many facts were searched, an estimate where `sampled` says so.

    how: by which way. exhaustive: no fact that belongs among the hits can be missing. sampled: from how many facts the
    statistics that rank were taken; None: from all of them.
    """

    hits: list[Hit]
    how: str
    candidates: int
    exhaustive: bool = True
    sampled: int | None = None
