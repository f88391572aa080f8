"""Whether agents may infer anything about a person: the person's own switch.

Off is the never-infer rule under the key above all keys: every new inference about the person is refused, whatever its key. What
they say themselves, what systems say, and what is remembered already stays as it is. Source: the product contract, never-infer.
"""

from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import NotFound
from memory.records import clock, fingerprints
from memory.records.ending import add_fingerprints
from memory.records.store import lock_inferences

_OF_NO_RECORD = ""


def _digest(tenant_id: UUID, subject: str) -> bytes:
    return fingerprints.of_inference(tenant_id, "user", subject, fingerprints.ANY_KEY)


def may_be_inferred_about(tenant_id: UUID, subject: str) -> bool:
    """Whether the person's switch is on; it is until they turn it off."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT NOT EXISTS (SELECT 1 FROM forgotten_fingerprint WHERE tenant_id = %s::uuid AND digest = %s::bytea "
            "AND kind = 'never-infer')",
            [tenant_id, _digest(tenant_id, subject)],
        )
        return bool(cursor.fetchone()[0])


def switch_inferences(*, principal: Principal, allowed: bool) -> None:
    """Turn it on or off for the caller's own subject; logged when it changes. Raises NotFound for who is no person here."""
    if principal.subject is None:
        raise NotFound
    tenant_id, subject = principal.tenant_id, principal.subject
    # Whoever infers at this moment is first, or is refused.
    lock_inferences(tenant_id, "user", subject, shared=False)
    if may_be_inferred_about(tenant_id, subject) == allowed:
        return
    digest = _digest(tenant_id, subject)
    if allowed:
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM forgotten_fingerprint WHERE tenant_id = %s::uuid AND digest = %s::bytea AND kind = 'never-infer'",
                [tenant_id, digest],
            )
    else:
        add_fingerprints(tenant_id, [(digest, "never-infer", _OF_NO_RECORD)], clock.now(), None)
    append_governance(
        principal=principal,
        payload={
            "type": "inferences.allowed" if allowed else "inferences.refused",
            "inferenceDigest": digest.hex(),
        },
    )
