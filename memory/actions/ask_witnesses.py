"""Send a tenant's newest checkpoint to the chosen witnesses, and keep what they sign beside it.

It comes after sealing and never before it: a checkpoint is signed and anchored whether or not a witness answers. A
cosignature is checked before it is kept. A witness that fails is asked again later and later, at most every ten minutes;
one that has seen another log than this is an alarm, in the server's log and in the tenant's record of governance.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import LogDamaged
from memory.integrity.checkpoints import StoredCheckpoint, stored_checkpoints
from memory.integrity.cosignatures import Cosignature
from memory.integrity.notes import Note, parse_checkpoint
from memory.integrity.seal_log import NodeMissing, StoredTree
from memory.integrity.standing import keep_answer, note_failure
from memory.integrity.witnesses import (
    CONTRADICTIONS,
    ChosenWitness,
    WitnessFailed,
    WitnessHas,
    ask,
)
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.integrity")

_STANDING = """
SELECT w.name, s.origin, coalesce(s.cosigned_size, 0), s.failure, coalesce(s.retry_at > clock_timestamp(), false)
FROM unnest(%(names)s::text[]) AS w(name)
LEFT JOIN witness_standing s ON s.tenant_id = %(tenant)s::uuid AND s.witness = w.name
"""


@dataclass(frozen=True, slots=True)
class _Standing:
    """`size`: what the witness cosigned of this origin, 0 for nothing."""

    size: int
    failure: str | None
    is_waiting: bool


def ask_witnesses(
    *,
    principal: Principal,
    witnesses: Iterable[ChosenWitness],
    silent: set[str],
    seconds: float,
) -> int:
    """Ask each witness that has not cosigned the newest checkpoint. Opens its own transactions; call it outside any.

    `seconds`: how long to go on asking; what was begun takes a fetch or two longer. `silent`: names of witnesses that did not
    answer in this turn, left alone and added to. Returns how many cosignatures were kept.
    """
    ends_at = time.monotonic() + seconds
    chosen = {witness.name: witness for witness in witnesses if witness.name not in silent}
    head, standing = _look(principal.tenant_id, chosen)
    if head is None:
        return 0
    kept = 0
    for name, witness in chosen.items():
        stands = standing[name]
        if stands.is_waiting or stands.size == head.size or time.monotonic() >= ends_at:
            continue
        try:
            cosignature = _cosigned(principal.tenant_id, witness, head, stands.size)
        except WitnessFailed as error:
            if error.reason == "unreachable":
                silent.add(name)
            _failed(principal, witness, head, error.reason, before=stands.failure)
            continue
        if cosignature is not None:
            _keep(principal.tenant_id, witness, head, cosignature)
            kept += 1
    return kept


def _look(
    tenant_id: UUID, chosen: dict[str, ChosenWitness]
) -> tuple[StoredCheckpoint | None, dict[str, _Standing]]:
    """The newest checkpoint, and how each witness stands to its log."""
    with tenant_context(tenant_id), connection.cursor() as cursor:
        heads = stored_checkpoints(cursor, tenant_id, limit=1)
        if not heads or not chosen:
            return None, {}
        cursor.execute(_STANDING, {"tenant": tenant_id, "names": list(chosen)})
        return heads[0], {
            name: _Standing(size if origin == heads[0].origin else 0, failure, is_waiting)
            for name, origin, size, failure, is_waiting in cursor.fetchall()
        }


def _cosigned(
    tenant_id: UUID, witness: ChosenWitness, head: StoredCheckpoint, size: int
) -> Cosignature | None:
    """The witness's cosignature; None when it has a newer head by now. Raises WitnessFailed."""
    note = parse_checkpoint(head.note_text)
    try:
        return _asked(tenant_id, witness, head, note, min(size, head.size))
    except WitnessHas as other:
        has = other.size
    if has > head.size:
        with tenant_context(tenant_id), connection.cursor() as cursor:
            newest = stored_checkpoints(cursor, tenant_id, limit=1)[0]
        if newest.size >= has:
            return None  # somebody sent it meanwhile
        raise WitnessFailed("ahead")
    try:
        return _asked(tenant_id, witness, head, note, has)
    except WitnessHas as other:
        raise WitnessFailed("conflict" if other.size == head.size else "unavailable") from other


def _asked(
    tenant_id: UUID, witness: ChosenWitness, head: StoredCheckpoint, note: Note, size: int
) -> Cosignature:
    """Ask once, from the size that the witness is thought to have. Raises WitnessHas, WitnessFailed."""
    with tenant_context(tenant_id), connection.cursor() as cursor:
        try:
            path = StoredTree(cursor, tenant_id).prove_consistency(size, head.size)
        except NodeMissing as error:
            raise LogDamaged from error
    return ask(witness, size, path, note, head.note_text)


def _keep(
    tenant_id: UUID, witness: ChosenWitness, head: StoredCheckpoint, cosignature: Cosignature
) -> None:
    with tenant_context(tenant_id), connection.cursor() as cursor:
        keep_answer(
            cursor,
            tenant_id,
            head,
            name=witness.name,
            place=witness.place,
            answer=cosignature.line,
        )


def _failed(
    principal: Principal,
    witness: ChosenWitness,
    head: StoredCheckpoint,
    reason: str,
    *,
    before: str | None,
) -> None:
    """Note it for the next turn and for those who look; say it once for each change."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        note_failure(cursor, principal.tenant_id, head, name=witness.name, reason=reason)
        if reason != before and reason in CONTRADICTIONS:
            append_governance(
                principal=principal,
                payload={
                    "type": "witness.contradicts",
                    "witness": witness.name,
                    "size": head.size,
                    "reason": reason,
                },
            )
    if reason == before:
        return
    said = {
        "tenant": principal.tenant_slug,
        "witness": witness.name,
        "size": head.size,
        "reason": reason,
    }
    if reason in CONTRADICTIONS:
        log.error("a witness has seen another log", **said)
    else:
        log.warning("a witness gave no cosignature", **said)
