"""What a web worker loads before anybody waits for it."""

import pytest

from memory.embeddings.provider import EmbeddingUnavailable, get_provider
from memory.search.warm import warm_up


def test_after_warming_up_a_vector_takes_no_loading() -> None:
    warm_up().join(60)
    (vector,) = get_provider().embed(["an aisle seat"], timeout_seconds=0.5)
    assert len(vector) == get_provider().dimensions


def test_a_model_that_does_not_load_is_said_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> list[list[float]]:
        raise EmbeddingUnavailable("minilm", "no file")

    monkeypatch.setattr(type(get_provider()), "embed", broken)
    warm_up().join(60)
    assert "did not load" in caplog.text
