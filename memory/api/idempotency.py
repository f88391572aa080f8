"""Answers kept for retried requests, per tenant and principal, for 24 hours, written in the transaction of their effect.

The lock that tells a running twin is taken with the caller's look-up. What is kept is the answer's text; when something in it is
forgotten or erased the text goes and the row stays, so a retry can never bring it back.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import connection

from memory.access import Principal, Scope, check_append, check_write
from memory.canonical import canonical
from memory.errors import BadInput, IdempotencyBodyMismatch, IdempotencyWithheld
from memory.ids import new_id
from memory.records import clock
from memory.records.overdue import is_over

_FIND = """
SELECT request_digest, status, answer, withheld_at IS NOT NULL, scopes_text, item_ref
FROM idempotency_key
WHERE tenant_id = %(tenant)s::uuid AND principal = %(principal)s::text AND key = %(key)s::text AND expires_at > now()
"""
KEEP = """
INSERT INTO idempotency_key
  (tenant_id, id, principal, key, request_digest, status, answer, item_ref, scopes_text, expires_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(principal)s::text, %(key)s::text, %(digest)s::bytea, %(status)s::smallint,
        %(answer)s::text, %(item_ref)s::text, %(scopes)s::text, now() + make_interval(hours => %(hours)s::int))
ON CONFLICT (tenant_id, principal, key) DO UPDATE
SET request_digest = excluded.request_digest, status = excluded.status, answer = excluded.answer,
    item_ref = excluded.item_ref, scopes_text = excluded.scopes_text, withheld_at = NULL,
    created_at = now(), expires_at = excluded.expires_at
WHERE idempotency_key.expires_at <= now()
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    status: int
    text: str


def read_key(header: str | None) -> str | None:
    """The Idempotency-Key of a request. Raises BadInput for one of the wrong length or form."""
    if header is None:
        return None
    if not 1 <= len(header) <= 256 or not header.isprintable():
        raise BadInput.at("Idempotency-Key", "must have 1 to 256 printable characters")
    return header


def digest_of(method: str, path: str, body: Any) -> bytes:
    """What 'the same request' means: method, path and canonical body."""
    return sha256(f"{method} {path}\n{canonical(body)}".encode()).digest()


def kept_answer(
    principal: Principal, key: str, digest: bytes, *, ability: str | None
) -> KeptAnswer | None:
    """The first answer to this key, with the caller's grants checked again; None for a new key.

    Raises IdempotencyBodyMismatch, IdempotencyWithheld, PermissionDenied.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _FIND, {"tenant": principal.tenant_id, "principal": principal.writer, "key": key}
        )
        row = cursor.fetchone()
    if row is None:
        return None
    kept_digest, status, answer, withheld, scopes, item_ref = row
    if bytes(kept_digest) != digest:
        raise IdempotencyBodyMismatch
    if withheld or _holds_what_is_over(principal, item_ref or ""):
        raise IdempotencyWithheld
    for scope in json.loads(scopes or "[]"):
        (check_append if ability == "append" else check_write)(principal, scope)
    return KeptAnswer(status, answer)


# As it will be withheld once somebody expires it.
_OVER = f"""
SELECT EXISTS (
  SELECT 1 FROM memory_record r WHERE r.tenant_id = %(tenant)s::uuid AND {is_over("r")} AND (
    r.id = %(record)s::text OR r.id IN (
      SELECT a.record_id FROM record_act a WHERE a.tenant_id = %(tenant)s::uuid AND a.receipt_number = %(receipt)s::text)))
"""


def _holds_what_is_over(principal: Principal, item_ref: str) -> bool:
    """Whether a record in it is past its last day."""
    kind, _, name = item_ref.partition(":")
    if kind not in ("record", "receipt"):
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            _OVER,
            {
                "tenant": principal.tenant_id,
                "record": name if kind == "record" else None,
                "receipt": name if kind == "receipt" else None,
                "today": clock.day_of(clock.now(), principal.time_zone),
            },
        )
        return bool(cursor.fetchone()[0])


def keep_parameters(
    principal: Principal,
    key: str,
    digest: bytes,
    *,
    status: int,
    answer: str,
    item_ref: str | None,
    scopes: Sequence[Scope],
) -> dict[str, Any]:
    """The named parameters of KEEP."""
    return {
        "tenant": principal.tenant_id,
        "id": new_id(),
        "principal": principal.writer,
        "key": key,
        "digest": digest,
        "status": status,
        "answer": answer,
        "item_ref": item_ref,
        "scopes": canonical([dict(scope) for scope in scopes]),
        "hours": settings.KINDMEM_IDEMPOTENCY_HOURS,
    }


def keep(parameters: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(KEEP, parameters)


def withhold(tenant_id: Any, item_ref: str) -> None:
    """Remove every kept answer that holds this item; retries of it are refused from now on."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET answer = NULL, withheld_at = now() "
            "WHERE tenant_id = %s::uuid AND item_ref = %s::text AND withheld_at IS NULL",
            [tenant_id, item_ref],
        )
