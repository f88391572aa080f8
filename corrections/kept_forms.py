"""What was typed into a form whose session had ended, kept until its sender has signed in again: then one press sends it.

The server keeps it sealed for half an hour; the key is in a cookie of the browser that typed it and nowhere else, so that the
database alone tells nothing. Secrets are never kept, and what is long or comes too often is not either: the page still holds the
text then.
"""

import base64
import json
import os
import secrets
from dataclasses import dataclass

from allauth.core.internal import ratelimit
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from corrections.views.refused import kept_fields

KEPT_SECONDS = 1800
LONGEST = 32 << 10
"""Characters of all fields together, names and values."""
_RATE = "20/5m/ip"
_NONCE_BYTES = 12
_NAME = "kept_form"


@dataclass(frozen=True, slots=True)
class KeptForm:
    """Where it was sent, and its fields."""

    send_to: str
    fields: list[tuple[str, str]]


def cookie_name() -> str:
    """Of this very host where the session's cookie is."""
    prefix = "__Host-" if settings.SESSION_COOKIE_NAME.startswith("__Host-") else ""
    return prefix + _NAME


def keep_form(request: HttpRequest) -> str | None:
    """Keep what was sent. The cookie's value, for `set_cookie`; None where it is not kept."""
    text = json.dumps([request.get_full_path(), kept_fields(request)])
    if len(text) > LONGEST:
        return None
    if not ratelimit.consume(request, app="kindmem", action=_NAME, config={_NAME: _RATE}):
        return None
    key, nonce, name = AESGCM.generate_key(256), os.urandom(_NONCE_BYTES), secrets.token_urlsafe(16)
    sealed = nonce + AESGCM(key).encrypt(nonce, text.encode(), name.encode())
    cache.add(f"{_NAME}:{name}", base64.b64encode(sealed).decode(), KEPT_SECONDS)
    return f"{name}.{base64.urlsafe_b64encode(key).decode()}"


def set_cookie(response: HttpResponse, value: str) -> None:
    response.set_cookie(
        cookie_name(),
        value,
        max_age=KEPT_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def kept_form(request: HttpRequest) -> KeptForm | None:
    """What this browser's sender typed; None when it is over, or was never kept."""
    name, _dot, key = request.COOKIES.get(cookie_name(), "").partition(".")
    sealed = cache.get(f"{_NAME}:{name}") if name and len(name) <= 64 else None
    if sealed is None:
        return None
    raw = base64.b64decode(sealed)
    try:
        cipher = AESGCM(base64.urlsafe_b64decode(key))
        text = cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], name.encode())
    except (InvalidTag, ValueError):
        return None
    send_to, fields = json.loads(text)
    return KeptForm(send_to, [(name, value) for name, value in fields])
