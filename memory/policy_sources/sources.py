"""Which registered source a policy's pointer belongs to.

A source's `match` is an https URI; a pointer belongs to it when scheme, host and port are the same and its path is
the match's path or lies below it. The longest match wins. Pointers that hide where they lead (user info, `..`,
backslashes) belong to none.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from uuid import UUID

from django.db import connection

from memory.fetch_rules import is_loopback

MOST_SOURCES = 200


@dataclass(frozen=True, slots=True)
class PolicySource:
    """`pointer`: RFC 6901, into the fetched JSON."""

    id: UUID
    match: str
    fetch_url: str
    pointer: str
    is_enabled: bool

    def wire(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "match": self.match,
            "fetch_url": self.fetch_url,
            "pointer": self.pointer,
            "enabled": self.is_enabled,
        }


def find_sources(tenant_id: UUID) -> list[PolicySource]:
    """The tenant's sources, by match."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, match, fetch_url, pointer, is_enabled FROM policy_source WHERE tenant_id = %s::uuid "
            "ORDER BY match, id LIMIT %s::int",
            [tenant_id, MOST_SOURCES],
        )
        return [PolicySource(*row) for row in cursor.fetchall()]


def list_sources(
    tenant_id: UUID, *, after: tuple[str, str] | None = None, limit: int
) -> list[PolicySource]:
    """At most `limit` sources by match and id, after such a pair."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, match, fetch_url, pointer, is_enabled FROM policy_source WHERE tenant_id = %s::uuid "
            'AND (match COLLATE "C", id::text) > (%s::text, %s::text) ORDER BY match COLLATE "C", id::text LIMIT %s::int',
            [tenant_id, *(after or ("", "")), limit],
        )
        return [PolicySource(*row) for row in cursor.fetchall()]


def source_of(sources: list[PolicySource], pointer: str) -> PolicySource | None:
    """The enabled source with the longest match; None when no source may answer for the pointer."""
    fitting = [one for one in sources if one.is_enabled and belongs_to(pointer, one.match)]
    return max(fitting, key=lambda one: len(one.match), default=None)


def belongs_to(pointer: str, match: str) -> bool:
    """Whether the URI `pointer` is `match` or lies below it."""
    ours, theirs = _plain(match), _plain(pointer)
    if ours is None or theirs is None or _place(ours) != _place(theirs):
        return False
    base = ours.path or "/"
    path = theirs.path or "/"
    return path == base or path.startswith(base if base.endswith("/") else base + "/")


def is_match(uri: str, *, allow_loopback: bool) -> bool:
    """Whether a URI may stand as a source's match: https, or with the development setting http on this machine."""
    parts = _plain(uri)
    if parts is None or parts.query or parts.fragment or not uri.isprintable() or " " in uri:
        return False
    host = parts.hostname or ""
    is_local = host == "localhost" or is_loopback(host)
    return parts.scheme == "https" or (parts.scheme == "http" and allow_loopback and is_local)


def _plain(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    path = unquote(parts.path)
    if "@" in parts.netloc or "\\" in uri or any(piece in ("..", ".") for piece in path.split("/")):
        return None
    return parts if parts.scheme and parts.hostname else None


def _place(parts: SplitResult) -> tuple[str, str | None, int | None]:
    usual = {"https": 443, "http": 80}
    return parts.scheme.lower(), parts.hostname, parts.port or usual.get(parts.scheme.lower())
