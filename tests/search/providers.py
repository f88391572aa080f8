"""Embedding providers whose every answer a test decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memory.embeddings.provider import EmbeddingError


@dataclass
class StubProvider:
    """Answers `vector_of(text)`, or raises `failure` while there is one. Counts the texts it was asked."""

    model: str = "stub"
    dimensions: int = 3
    is_local: bool = True
    vector_of: Callable[[str], list[float]] = lambda text: [1.0, 0.0, 0.0]
    failure: EmbeddingError | None = None
    asked: list[str] = field(default_factory=list)

    def embed(
        self, texts: Sequence[str], *, timeout_seconds: float | None = None
    ) -> list[list[float]]:
        self.asked += texts
        if self.failure is not None:
            raise self.failure
        return [self.vector_of(text) for text in texts]
