"""Answers kept for retried requests, per tenant and principal, for 24 hours, written in the transaction of their effect.

The lock that tells a running twin is taken with the caller's look-up; what needs several transactions reserves the key in the
first. The key is kept as a keyed digest. What else is kept is the answer's text; when something in it is forgotten or erased the
text goes and the row stays, so a retry can never bring it back.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from memory.access import Principal, Scope, check_append, check_write
from memory.canonical import canonical
from memory.errors import (
    BadInput,
    IdempotencyBodyMismatch,
    IdempotencyInFlight,
    IdempotencyWithheld,
)
from memory.ids import new_id
from memory.records import clock, fingerprints
from memory.records.overdue import is_over
from memory.tenancy import tenant_context

_FIND = """
SELECT request_digest, status, answer, withheld_at IS NOT NULL, scopes_text, item_ref
FROM idempotency_key
WHERE tenant_id = %(tenant)s::uuid AND principal = %(principal)s::text AND key IN (%(key)s::text, %(plain)s::text)
  AND expires_at > now()
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


# What runs outside of one transaction says so in a row of its own; when it dies, the key is free again after a while.
_RESERVE = """
INSERT INTO idempotency_key (tenant_id, id, principal, key, request_digest, status, item_ref, scopes_text, expires_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(principal)s::text, %(key)s::text, %(digest)s::bytea, 0, %(item_ref)s::text, '[]',
        now() + make_interval(secs => %(lease)s::int))
ON CONFLICT (tenant_id, principal, key) DO UPDATE
SET id = excluded.id, request_digest = excluded.request_digest, status = 0, answer = NULL, item_ref = excluded.item_ref,
    scopes_text = '[]', withheld_at = NULL, created_at = now(), expires_at = excluded.expires_at
WHERE idempotency_key.expires_at <= now()
"""
# What was forgotten while it ran is withheld already.
_KEEP_RESERVED = """
UPDATE idempotency_key
SET status = %(status)s::smallint, answer = CASE WHEN withheld_at IS NULL THEN %(answer)s::text END,
    scopes_text = %(scopes)s::text, expires_at = now() + make_interval(hours => %(hours)s::int)
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status = 0
"""
_LET_GO = "DELETE FROM idempotency_key WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid AND status = 0"
LEASE_SECONDS = 600


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


def stored_key(tenant_id: UUID, key: str) -> str:
    """How a key is kept: clients may choose one that names a person, or says what they said."""
    return fingerprints.of_text(tenant_id, f"Idempotency-Key {key}").hex()


def digest_of(method: str, path: str, body: Any) -> bytes:
    """What 'the same request' means: method, path and canonical body."""
    return sha256(f"{method} {path}\n{canonical(body)}".encode()).digest()


def kept_answer(
    principal: Principal, key: str, digest: bytes, *, ability: str | None
) -> KeptAnswer | None:
    """The first answer to this key, with the caller's grants checked again; None for a new key.

    Raises IdempotencyBodyMismatch, IdempotencyInFlight, IdempotencyWithheld, PermissionDenied.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _FIND,
            {
                "tenant": principal.tenant_id,
                "principal": principal.writer,
                "key": stored_key(principal.tenant_id, key),
                # Of a request that was answered before keys were kept so: it is there for a day.
                "plain": key,
            },
        )
        row = cursor.fetchone()
    if row is None:
        return None
    kept_digest, status, answer, withheld, scopes, item_ref = row
    if bytes(kept_digest) != digest:
        raise IdempotencyBodyMismatch
    if status == 0:
        raise IdempotencyInFlight
    if withheld or answer is None or _holds_what_is_over(principal, item_ref or ""):
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
        "key": stored_key(principal.tenant_id, key),
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


def reserve(
    principal: Principal, reservation: UUID, key: str, digest: bytes, *, item_ref: str | None
) -> None:
    """Say that the request runs, for what takes more than one transaction, under the reservation's new id.

    Raises IdempotencyInFlight.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _RESERVE,
            {
                "tenant": principal.tenant_id,
                "id": reservation,
                "principal": principal.writer,
                "key": stored_key(principal.tenant_id, key),
                "digest": digest,
                "item_ref": item_ref,
                "lease": LEASE_SECONDS,
            },
        )
        if cursor.rowcount == 0:
            raise IdempotencyInFlight


def keep_reserved(
    principal: Principal,
    reservation: UUID,
    *,
    status: int,
    answer: str | None,
    scopes: Sequence[Scope],
) -> None:
    """The answer of what ran; None for one that is too large to be kept, and is given once. In a transaction of its own."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            _KEEP_RESERVED,
            {
                "tenant": principal.tenant_id,
                "id": reservation,
                "status": status,
                "answer": answer,
                "scopes": canonical([dict(scope) for scope in scopes]),
                "hours": settings.KINDMEM_IDEMPOTENCY_HOURS,
            },
        )


@contextmanager
def freed_when_refused(principal: Principal, reservation: UUID | None) -> Iterator[None]:
    """What runs in here was done when it ends; where it is refused, or fails, the key is as it was."""
    try:
        yield
    except BaseException:
        if reservation is not None:
            let_go(principal, reservation)
        raise


def let_go(principal: Principal, reservation: UUID) -> None:
    """The key is as it was. Where the database can't be asked, its time runs out. In a transaction of its own."""
    for _ in range(2):
        try:
            with tenant_context(principal.tenant_id), connection.cursor() as cursor:
                cursor.execute(_LET_GO, {"tenant": principal.tenant_id, "id": reservation})
        except (DatabaseError, InterfaceError):
            # Lost, as that of the work was: over another one it may be told.
            connection.close()
        else:
            return


def withhold(tenant_id: Any, item_ref: str) -> None:
    """Remove every kept answer that holds this item; retries of it are refused from now on."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET answer = NULL, withheld_at = now() "
            "WHERE tenant_id = %s::uuid AND item_ref = %s::text AND withheld_at IS NULL",
            [tenant_id, item_ref],
        )
