"""What a refresh handler is asked, and what it may answer.

A handler looks at the source and says whether the cached content still is what it holds. It writes nothing: what it answers is
checked like any write, and when it fails, hangs or answers something inadmissible the fact stays as it was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """One fact to look after. `hosts`: those that the tenant registered, lower case."""

    tenant: str
    fact_id: str
    type: str
    source_kind: str
    uri: str | None
    etag: str | None
    source_version: str | None
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The source still holds the cached content. A validator that is None stays as it was."""

    etag: str | None = None
    source_version: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the source holds now: any JSON value. Equal content is no change."""

    content: Any
    etag: str | None = None
    source_version: str | None = None


class RefreshError(Exception):
    """The source could not be looked at. `code`: kebab-case, never content."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


Handler = Callable[[RefreshRequest, float], Unchanged | Fetched]
"""(what to look at, seconds left) → what was found. Raises RefreshError."""
