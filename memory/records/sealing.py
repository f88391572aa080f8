"""Sealed copies: what is taken away but must, or may, come back. AES-256-GCM under a key outside the database.

A copy for a hold stays until the hold's release, one for an undo until its deadline; no route reads either. The
record and the purpose are bound in, so that a copy can't stand in for another.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import connection

from memory.canonical import canonical
from memory.records import clock

_NONCE_BYTES = 12


def _bound(tenant_id: UUID, record_id: str, purpose: str) -> bytes:
    return canonical([str(tenant_id), record_id, purpose]).encode()


def seal_for_hold(tenant_id: UUID, values: Mapping[str, str], at: datetime) -> None:
    """Seal values (record id → canonical text) until their holds are released."""
    _seal(tenant_id, "hold", values, at, None, None)


def seal_for_undo(
    tenant_id: UUID, values: Mapping[str, str], at: datetime, *, receipt: str, until: datetime
) -> None:
    """Seal values until the receipt's deadline."""
    _seal(tenant_id, "undo", values, at, receipt, until)


def _seal(
    tenant_id: UUID,
    purpose: str,
    values: Mapping[str, str],
    at: datetime,
    receipt: str | None,
    until: datetime | None,
) -> None:
    if not values:
        return
    cipher = AESGCM(settings.KINDMEM_STATE.sealing_key)
    nonces = [secrets.token_bytes(_NONCE_BYTES) for _ in values]
    sealed = [
        cipher.encrypt(nonce, text.encode(), _bound(tenant_id, record_id, purpose))
        for nonce, (record_id, text) in zip(nonces, values.items(), strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sealed_copy "
            "(tenant_id, record_id, purpose, receipt_number, nonce, ciphertext, sealed_at, destroy_after) "
            "SELECT %(tenant)s::uuid, s.id, %(purpose)s::text, %(receipt)s::text, s.nonce, s.sealed, "
            "%(at)s::timestamptz, %(until)s::timestamptz "
            "FROM unnest(%(ids)s::text[], %(nonces)s::bytea[], %(sealed)s::bytea[]) AS s (id, nonce, sealed)",
            {
                "tenant": tenant_id,
                "purpose": purpose,
                "receipt": receipt,
                "ids": list(values),
                "nonces": nonces,
                "sealed": sealed,
                "at": at,
                "until": until,
            },
        )


def open_for_undo(tenant_id: UUID, receipt: str) -> dict[str, str]:
    """The values sealed under a receipt, by record id."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT record_id, nonce, ciphertext FROM sealed_copy "
            "WHERE tenant_id = %s::uuid AND receipt_number = %s::text AND purpose = 'undo'",
            [tenant_id, receipt],
        )
        return _opened(tenant_id, cursor.fetchall())


def _opened(tenant_id: UUID, rows: Sequence[tuple[str, bytes, bytes]]) -> dict[str, str]:
    """The values of copies that were sealed for an undo, by record id; of two the later."""
    cipher = AESGCM(settings.KINDMEM_STATE.sealing_key)
    return {
        record_id: cipher.decrypt(
            bytes(nonce), bytes(sealed), _bound(tenant_id, record_id, "undo")
        ).decode()
        for record_id, nonce, sealed in rows
    }


def destroy_undo_copies(
    tenant_id: UUID, *, receipt: str | None = None, record_ids: list[str] | None = None
) -> int:
    """Destroy what was sealed for an undo, by receipt or by record; how many copies went."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM sealed_copy WHERE tenant_id = %(tenant)s::uuid AND purpose = 'undo' "
            "AND (receipt_number = %(receipt)s::text OR record_id = ANY(%(ids)s::text[]))",
            {"tenant": tenant_id, "receipt": receipt, "ids": record_ids or []},
        )
        return cursor.rowcount


def destroy_overdue(tenant_id: UUID, at: datetime, *, limit: int = 1000) -> int:
    """Destroy copies whose undo deadline has passed; how many went. For the worker, in batches."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM sealed_copy WHERE tenant_id = %(tenant)s::uuid AND purpose = 'undo' AND record_id IN ("
            "SELECT record_id FROM sealed_copy WHERE tenant_id = %(tenant)s::uuid AND destroy_after <= %(at)s::timestamptz "
            "ORDER BY destroy_after LIMIT %(limit)s::int)",
            {"tenant": tenant_id, "at": at, "limit": limit},
        )
        return cursor.rowcount


_ONLY_FOR_UNDO = """
SELECT s.record_id, s.nonce, s.ciphertext
FROM record_hold k JOIN sealed_copy s ON s.tenant_id = k.tenant_id AND s.record_id = k.record_id AND s.purpose = 'undo'
WHERE k.tenant_id = %(tenant)s::uuid AND k.hold_id = %(hold)s::uuid
  AND NOT EXISTS (SELECT FROM record_value v WHERE v.tenant_id = k.tenant_id AND v.record_id = k.record_id)
  AND NOT EXISTS (SELECT FROM sealed_copy o WHERE o.tenant_id = k.tenant_id AND o.record_id = k.record_id AND o.purpose = 'hold')
ORDER BY s.record_id, s.sealed_at
"""


def keep_undo_copies(tenant_id: UUID, hold_id: UUID) -> int:
    """Seal for a hold what only an undo keeps any more of the records that it names; how many.

    Whatever the hold found stays when the undo's deadline comes.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ONLY_FOR_UNDO, {"tenant": tenant_id, "hold": hold_id})
        rows = cursor.fetchall()
    values = _opened(tenant_id, rows)
    seal_for_hold(tenant_id, values, clock.now())
    return len(values)
