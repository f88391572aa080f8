"""Keyset pages: an opaque cursor that is bound to the caller and the filter, and says after which row to go on.

No row is skipped or repeated when rows are added while paging, also with equal timestamps: the position ends in the id.
"""

import base64
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from django.conf import settings

from memory.access import Principal
from memory.errors import BadInput

_TAG_BYTES = 16


def _tag(principal: Principal, route: str, filters: Mapping[str, Any], position: bytes) -> bytes:
    bound = json.dumps(
        [str(principal.tenant_id), principal.writer, route, filters], sort_keys=True, default=str
    )
    message = bound.encode() + b"\x00" + position
    return hmac.new(settings.SECRET_KEY.encode(), message, sha256).digest()[:_TAG_BYTES]


def make_cursor(
    principal: Principal, route: str, filters: Mapping[str, Any], position: Sequence[Any]
) -> str:
    body = json.dumps(list(position), default=str).encode()
    return (
        base64.urlsafe_b64encode(_tag(principal, route, filters, body) + body).decode().rstrip("=")
    )


def read_cursor(
    principal: Principal, route: str, filters: Mapping[str, Any], cursor: str | None
) -> list[Any] | None:
    """The position that the cursor holds; None without one. Raises BadInput for any other's cursor."""
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raw = b""
    tag, body = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    if len(tag) < _TAG_BYTES or not hmac.compare_digest(tag, _tag(principal, route, filters, body)):
        raise BadInput.at("cursor", "is not a cursor of this list with these filters")
    position: list[Any] = json.loads(body)
    return position


def page(
    rows: Sequence[Any],
    limit: int,
    *,
    render: Callable[[Any], Any],
    next_cursor: Callable[[Any], str],
) -> dict[str, Any]:
    """The answer of a list from up to `limit + 1` rows: `{data, hasMore, nextCursor?}`."""
    shown = rows[:limit]
    answer: dict[str, Any] = {"data": [render(row) for row in shown], "hasMore": len(rows) > limit}
    if answer["hasMore"]:
        answer["nextCursor"] = next_cursor(shown[-1])
    return answer
