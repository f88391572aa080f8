"""The built-in handler `http-api`: a conditional GET with the stored etag, of a registered https host only.

304 says unchanged; 200 brings the content as JSON. Everything else, a 304 that nobody asked for included, is a failure.
"""

import httpx  # noqa: F401  # the fetcher loads it on first use, which must not be counted to a reader's two seconds
from django.conf import settings

from memory import admission
from memory.fetch_rules import parse_target
from memory.fetcher import FetchError, fetch
from memory.refresh.handler import Fetched, RefreshError, RefreshRequest, Unchanged

_MOST_ETAG = 256


def http_api(request: RefreshRequest, seconds: float) -> Unchanged | Fetched:
    """Raises RefreshError."""
    if request.uri is None:
        raise RefreshError("source-has-no-uri")
    may_loop = settings.KINDMEM_DEVELOPMENT
    headers = {"Accept": "application/json"}
    if request.etag is not None:
        headers["If-None-Match"] = request.etag
    limit = settings.KINDMEM_BODY_MAX_BYTES
    try:
        host = parse_target(request.uri, allow_loopback=may_loop).host
        if host not in request.hosts:
            raise RefreshError("source-not-registered")
        answer = fetch(
            request.uri,
            headers=headers,
            timeout_seconds=seconds,
            max_bytes=limit,
            allow_loopback=may_loop,
        )
    except FetchError as error:
        raise RefreshError(error.code) from error
    etag = answer.headers.get("etag", "")
    kept_etag = etag if 0 < len(etag) <= _MOST_ETAG else None
    if answer.status == 304 and request.etag is not None:
        return Unchanged(etag=kept_etag)
    if answer.status != 200:
        raise RefreshError(f"source-answered-{answer.status}")
    try:
        return Fetched(admission.admit(answer.body, max_bytes=limit), etag=kept_etag)
    except (admission.BadInput, admission.TooLarge):
        raise RefreshError("source-answered-no-json") from None
