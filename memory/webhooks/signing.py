"""Secrets of webhooks and signatures by the rules of Standard Webhooks (standardwebhooks.com, 1.0.0).

A secret is `whsec_` and 32 random bytes in base64; it is stored sealed under a key outside the database. Signed is
`<id>.<timestamp>.<body>`; while a secret is being replaced, with both.
"""

import base64
import hmac
import secrets
from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from memory.canonical import canonical

PREFIX = "whsec_"
_SECRET_BYTES = 32
_NONCE_BYTES = 12


def new_secret() -> str:
    """A new secret, as the receiver keeps it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def seal_secret(tenant_id: UUID, webhook_id: UUID, secret: str) -> bytes:
    """What is stored of a secret; it opens for this webhook alone."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    cipher = AESGCM(settings.KINDMEM_STATE.sealing_key)
    return nonce + cipher.encrypt(nonce, secret.encode(), _bound(tenant_id, webhook_id))


def open_secret(tenant_id: UUID, webhook_id: UUID, sealed: bytes) -> str:
    """The secret. Raises InvalidTag for another installation's, or another webhook's."""
    nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    cipher = AESGCM(settings.KINDMEM_STATE.sealing_key)
    return cipher.decrypt(nonce, ciphertext, _bound(tenant_id, webhook_id)).decode()


def _bound(tenant_id: UUID, webhook_id: UUID) -> bytes:
    return canonical([str(tenant_id), str(webhook_id), "webhook-secret"]).encode()


def signature(secrets_: Sequence[str], event_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature a secret, the present one first."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    return " ".join("v1," + _signed(secret, signed) for secret in secrets_)


def _signed(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
