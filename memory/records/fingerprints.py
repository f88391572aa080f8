"""Keyed digests of what must not come back, and of values in logs and receipts.

HMAC-SHA256 under a key that lies outside the database: whoever has the database, or a backup of it, can't test
guesses. A value counts as the same when it is after trimming and case-folding each string in it, however its characters
are composed and whatever stands between them that nobody sees.
"""

import hmac
import unicodedata
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.conf import settings

from memory.canonical import canonical


def _digest(purpose: str, tenant_id: UUID, *parts: str) -> bytes:
    message = canonical([purpose, str(tenant_id), *parts]).encode()
    return hmac.new(settings.KINDMEM_STATE.fingerprint_key, message, sha256).digest()


def folded(value: Any) -> Any:
    """The value with each string trimmed and case-folded, names of members left alone.

    Composed and compatible forms are one (NFKC), and characters without a shape, such as a zero-width space, count for nothing.
    """
    if isinstance(value, str):
        return _spelled(_spelled(value).casefold())
    if isinstance(value, list):
        return [folded(part) for part in value]
    if isinstance(value, dict):
        return {name: folded(part) for name, part in value.items()}
    return value


def _spelled(text: str) -> str:
    seen = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", seen).strip()


def of_key(tenant_id: UUID, subject_type: str, subject_id: str, key: str) -> bytes:
    """32 bytes for (subject, key)."""
    return _digest("key", tenant_id, subject_type, subject_id, key)


def of_value(tenant_id: UUID, subject_type: str, subject_id: str, key: str, value: Any) -> bytes:
    """32 bytes for (subject, key, value)."""
    return _digest("value", tenant_id, subject_type, subject_id, key, canonical(folded(value)))


def of_inference(tenant_id: UUID, subject_type: str, subject_id: str, prefix: str) -> bytes:
    """32 bytes for (subject, key or prefix) of which nothing may be inferred."""
    return _digest("never-infer", tenant_id, subject_type, subject_id, prefix)


ANY_KEY = ""
"""The prefix above all keys: nothing at all may be inferred about the subject."""


def prefixes(key: str) -> list[str]:
    """`a.b.c` → `a`, `a.b`, `a.b.c`."""
    parts = key.split(".")
    return [".".join(parts[: length + 1]) for length in range(len(parts))]


def of_text(tenant_id: UUID, text: str) -> bytes:
    """32 bytes for a canonical text: what receipts and the governance log say of a value."""
    return _digest("text", tenant_id, text)


def of_request(tenant_id: UUID, normal_form: Any) -> bytes:
    """32 bytes for a remember request in its normal form, to tell a repeated one."""
    return _digest("request", tenant_id, canonical(normal_form))
