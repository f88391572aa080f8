"""Loads what the first search or write would wait for: the tokeniser's stems and the embedding model, in a thread of its own.

A web worker that has not loaded them yet answers all the same; its first vectors come late.
"""

import threading

import structlog

from memory.embeddings.provider import EmbeddingError, default_model, get_provider
from memory.search.analysis import analyse

log = structlog.get_logger("kindmem.search")


def warm_up() -> threading.Thread:
    """Start loading; the thread that does it."""
    thread = threading.Thread(target=_load, name="warm-up", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    analyse("warm", "english")
    if default_model() is None:
        return
    try:
        provider = get_provider()
        if provider.is_local:
            provider.embed(["warm"])
    except EmbeddingError as error:
        log.warning("the embedding model did not load", code=error.code)
