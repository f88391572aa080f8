"""An embedding endpoint that speaks OpenAI's `POST {base}/embeddings`.

The answer is not trusted: its order, lengths and numbers are checked, and vectors are scaled to
length 1 here. The operator configures the address, so it may be plain http on loopback, and it
does not go through the guarded fetcher. Nothing is retried here and nobody is made to sleep:
after 429 or 503 the endpoint is left alone for the time it asked for, and callers are told.
"""

from __future__ import annotations

import email.utils
import ipaddress
import json
import math
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.core.exceptions import ImproperlyConfigured

from memory.embeddings.provider import (
    EmbeddingBadAnswer,
    EmbeddingTimeout,
    EmbeddingUnavailable,
)

TIMEOUT_SECONDS = 30.0
TEXTS_PER_REQUEST = 64
# Roughly 2,000 tokens of English; endpoints refuse a text above their model's window.
MAX_CHARS = 8_000
# The longest vector that pgvector can index (halfvec).
MAX_DIMENSIONS = 4_000
MAX_ANSWER_BYTES = TEXTS_PER_REQUEST * MAX_DIMENSIONS * 32
MAX_WAIT_SECONDS = 3_600.0
DEFAULT_WAIT_SECONDS = 5.0
BLANK_TEXT = "empty"
KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


class OpenAiCompatible:
    """EmbeddingProvider over HTTP; one connection pool, shared by all threads.

    With `requested_dimensions` the number is sent with each request and is part of the wire
    name (`name@256`): vectors of two lengths are two models, even from one network.
    """

    is_local = False

    def __init__(
        self,
        *,
        url: str,
        name: str,
        key: str = "",
        requested_dimensions: int | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if requested_dimensions is not None and not 1 <= requested_dimensions <= MAX_DIMENSIONS:
            raise ImproperlyConfigured(
                f"KINDMEM_EMBEDDINGS_DIMENSIONS is {requested_dimensions}; it must be between "
                f"1 and {MAX_DIMENSIONS}."
            )
        self.model = name if requested_dimensions is None else f"{name}@{requested_dimensions}"
        self._name = name
        self._address = _checked_base(url) + "/embeddings"
        self._key = key
        self._requested = requested_dimensions
        self._dimensions = requested_dimensions or KNOWN_DIMENSIONS.get(name)
        self._transport = transport
        self._opening = threading.Lock()
        self._client: httpx.Client | None = None
        self._not_before = 0.0

    @property
    def dimensions(self) -> int:
        """Length of every vector; asks the endpoint once when nothing says it yet."""
        if self._dimensions is None:
            self.embed([BLANK_TEXT])
        if self._dimensions is None:
            raise EmbeddingBadAnswer(self.model, "gave no vector to tell its length by")
        return self._dimensions

    def embed(
        self, texts: Sequence[str], *, timeout_seconds: float | None = None
    ) -> list[list[float]]:
        """Return one unit vector for each text; see EmbeddingProvider. 30 seconds by default."""
        deadline = time.monotonic() + (timeout_seconds or TIMEOUT_SECONDS)
        vectors: list[list[float]] = []
        for start in range(0, len(texts), TEXTS_PER_REQUEST):
            part = texts[start : start + TEXTS_PER_REQUEST]
            sent = [(text if text.strip() else BLANK_TEXT)[:MAX_CHARS] for text in part]
            vectors.extend(self._vectors_in(self._ask(sent, deadline), len(sent)))
        return vectors

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _ask(self, texts: Sequence[str], deadline: float) -> Any:
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise EmbeddingUnavailable(
                self.model, "asked to be left alone for a while", retry_after_seconds=wait
            )
        asked: dict[str, Any] = {
            "model": self._name,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._requested is not None:
            asked["dimensions"] = self._requested
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            with self._opened().stream(
                "POST",
                self._address,
                json=asked,
                headers=headers,
                timeout=self._left(deadline),
            ) as answer:
                self._check_status(answer)
                body = self._read(answer, deadline)
        except httpx.TimeoutException as error:
            raise EmbeddingTimeout(self.model, "did not answer in time") from error
        except httpx.TransportError as error:
            raise EmbeddingUnavailable(
                self.model, f"could not be reached: {type(error).__name__}"
            ) from error
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise EmbeddingBadAnswer(self.model, "answered something that is not JSON") from error

    def _opened(self) -> httpx.Client:
        with self._opening:
            if self._client is None:
                # Proxies and .netrc of the environment are not asked; its CA bundle is.
                self._client = httpx.Client(
                    trust_env=False,
                    verify=httpx.create_ssl_context(),
                    transport=self._transport,
                    follow_redirects=False,
                )
            return self._client

    def _left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise EmbeddingTimeout(self.model, "the time given is over")
        return left

    def _check_status(self, answer: httpx.Response) -> None:
        if answer.status_code in (429, 503):
            wait = _retry_after_seconds(answer.headers.get("retry-after"))
            self._not_before = time.monotonic() + wait
            raise EmbeddingUnavailable(
                self.model, f"answered {answer.status_code}", retry_after_seconds=wait
            )
        if answer.status_code >= 500 or answer.status_code in (401, 403, 404):
            raise EmbeddingUnavailable(self.model, f"answered {answer.status_code}")
        if answer.status_code != 200:
            raise EmbeddingBadAnswer(self.model, f"answered {answer.status_code}")

    def _read(self, answer: httpx.Response, deadline: float) -> bytes:
        body = bytearray()
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise EmbeddingBadAnswer(self.model, "answered more than the texts can need")
            self._left(deadline)
        return bytes(body)

    def _vectors_in(self, answer: Any, count: int) -> list[list[float]]:
        rows = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise EmbeddingBadAnswer(self.model, "answered without a list of vectors")
        by_index = {row.get("index"): row.get("embedding") for row in rows}
        if len(rows) != count or set(by_index) != set(range(count)):
            raise EmbeddingBadAnswer(self.model, f"did not answer one vector for each of {count}")
        return [self._unit(by_index[index]) for index in range(count)]

    def _unit(self, given: Any) -> list[float]:
        if not isinstance(given, list) or not 1 <= len(given) <= MAX_DIMENSIONS:
            raise EmbeddingBadAnswer(self.model, "answered a vector of no usable length")
        if not all(type(number) in (int, float) for number in given):
            raise EmbeddingBadAnswer(self.model, "answered a vector with something but numbers")
        if self._dimensions is None:
            self._dimensions = len(given)
        if len(given) != self._dimensions:
            raise EmbeddingBadAnswer(
                self.model, f"answered {len(given)} numbers where {self._dimensions} are expected"
            )
        # Python's JSON admits NaN, Infinity and integers that no float can hold.
        largest = max(map(abs, given))
        if largest > sys.float_info.max or not largest or any(n != n for n in given):
            raise EmbeddingBadAnswer(self.model, "answered a vector without a direction")
        scaled = [number / largest for number in given]
        length = math.sqrt(math.fsum(number * number for number in scaled))
        return [number / length for number in scaled]


def _checked_base(url: str) -> str:
    """The base address without a closing slash; https, or http on loopback."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname and not parts.username:
        return url.rstrip("/")
    if parts.scheme == "http" and parts.hostname and _is_loopback(parts.hostname):
        return url.rstrip("/")
    raise ImproperlyConfigured(
        "KINDMEM_EMBEDDINGS_URL must be https without a user name, or http on loopback."
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _retry_after_seconds(given: str | None) -> float:
    """Seconds in a Retry-After header, which is a number or a date (RFC 9110 10.2.3)."""
    seconds = DEFAULT_WAIT_SECONDS
    if given is not None and given.strip().isascii() and given.strip().isdigit():
        seconds = float(given)
    elif given is not None:
        try:
            then = email.utils.parsedate_to_datetime(given)
        except ValueError:
            return DEFAULT_WAIT_SECONDS
        seconds = (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), MAX_WAIT_SECONDS)
