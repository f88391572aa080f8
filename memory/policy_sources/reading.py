"""Reading policy values now, outside any transaction: two seconds in all, 64 KiB each, nothing of the context sent.

Whatever goes wrong (down, slow, redirecting, huge, no JSON, nothing at the pointer) is one outcome: unavailable. The
value lives as long as the answer it goes into.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.db import connection

from memory import admission
from memory.canonical import canonical
from memory.fetcher import FetchError, fetch
from memory.policy_sources.sources import PolicySource

log = structlog.get_logger("kindmem.policy_sources")

SECONDS = 2.0
MAX_BYTES = 65_536


class Unavailable(Exception):
    """The source gave nothing usable; `why` is a code for the log, never what was read."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Reading:
    """The value as canonical text; None: unavailable."""

    value_text: str | None


def read_policies(sources: Sequence[PolicySource]) -> list[Reading]:
    """What each source says now, in order, all of them within two seconds."""
    if connection.in_atomic_block:
        log.error("policy source read inside a transaction")
        return [Reading(None) for _ in sources]
    ends = time.monotonic() + SECONDS
    readings: list[Reading] = [Reading(None) for _ in sources]

    def read(place: int, source: PolicySource) -> None:
        readings[place] = _reading(source, ends - time.monotonic())

    if len(sources) == 1:
        read(0, sources[0])
        return readings
    threads = [
        threading.Thread(target=read, args=(place, source), name="policy", daemon=True)
        for place, source in enumerate(sources)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return list(readings)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a source gives now: the value as canonical text, or `why` there is none, as a code."""

    value_text: str | None
    why: str | None


def try_source(source: PolicySource) -> Trial:
    """Ask one source as recall does, and say what came of it. Outside any transaction; nothing is kept."""
    if connection.in_atomic_block:
        raise RuntimeError("a policy source is asked outside any transaction")
    try:
        return Trial(_value_text(source, SECONDS), None)
    except Unavailable as failure:
        return Trial(None, failure.why)


def _reading(source: PolicySource, seconds: float) -> Reading:
    try:
        return Reading(_value_text(source, seconds))
    except Unavailable as failure:
        log.warning("policy source unavailable", source=str(source.id), why=failure.why)
        return Reading(None)


def _value_text(source: PolicySource, seconds: float) -> str:
    if seconds <= 0:
        raise Unavailable("fetch-timeout")
    try:
        fetched = fetch(
            source.fetch_url,
            headers={"Accept": "application/json", "Cache-Control": "no-cache"},
            timeout_seconds=seconds,
            max_bytes=MAX_BYTES,
            allow_loopback=settings.KINDMEM_DEVELOPMENT,
        )
    except FetchError as error:
        raise Unavailable(error.code) from error
    if fetched.status != 200:
        raise Unavailable(f"status-{fetched.status}")
    try:
        document = admission.admit(fetched.body, max_bytes=MAX_BYTES)
    except (admission.BadInput, admission.TooLarge) as error:
        raise Unavailable("not-json") from error
    return canonical(at_pointer(document, source.pointer))


def at_pointer(document: Any, pointer: str) -> Any:
    """What RFC 6901 finds there. Raises Unavailable when there is nothing, or null."""
    found = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif (
            isinstance(found, list)
            and name.isascii()
            and name.isdigit()
            and (name == "0" or not name.startswith("0"))
            and int(name) < len(found)
        ):
            found = found[int(name)]
        else:
            raise Unavailable("nothing-at-pointer")
    if found is None:
        raise Unavailable("nothing-at-pointer")
    return found
