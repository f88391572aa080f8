"""Have a tenant's newest checkpoint stamped by the chosen time stamp authorities, and keep what they sign beside it.

It comes after sealing and never before it, and not for each checkpoint: an authority is asked once in
`KINDMEM_TIMESTAMP_SECONDS` at most, when there is a newer checkpoint than it stamped. A stamp is checked before it is kept, in
the database and in a file beside the anchors. An authority that fails is asked again later and later, at most every ten minutes.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.db import connection

from memory.access import Principal
from memory.hashing import timestamp_text
from memory.integrity.anchors import keep_stamp
from memory.integrity.checkpoints import StoredCheckpoint, stored_checkpoints
from memory.integrity.standing import keep_answer, note_failure
from memory.integrity.timestamps import Authority, Stamp, StampFailed, ask_stamp, stamp_text
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.integrity")

# Waiting: after a failure, or because the last stamp is young enough.
_STANDING = """
SELECT p.place, coalesce(a.size, 0), s.failure,
  coalesce(s.retry_at > clock_timestamp(), false)
    OR coalesce(a.anchored_at > clock_timestamp() - make_interval(secs => %(every)s::double precision), false)
FROM unnest(%(places)s::text[]) AS p(place)
LEFT JOIN witness_standing s ON s.tenant_id = %(tenant)s::uuid AND s.witness = p.place
LEFT JOIN LATERAL (
  SELECT size, anchored_at FROM anchor WHERE tenant_id = %(tenant)s::uuid AND place = p.place ORDER BY size DESC LIMIT 1
) a ON true
"""


@dataclass(frozen=True, slots=True)
class _Standing:
    size: int
    failure: str | None
    is_waiting: bool


def stamp_checkpoint(
    *, principal: Principal, authorities: Iterable[Authority], silent: set[str], seconds: float
) -> int:
    """Ask each authority whose turn it is. Opens its own transactions; call it outside any.

    `seconds`: how long to go on asking. `silent`: names of authorities that did not answer in this turn, left alone and added to.
    Returns how many stamps were kept.
    """
    ends_at = time.monotonic() + seconds
    chosen = {one.place: one for one in authorities if one.name not in silent}
    head, standing = _look(principal, list(chosen))
    if head is None:
        return 0
    kept = 0
    for place, authority in chosen.items():
        stands = standing[place]
        if stands.is_waiting or stands.size >= head.size or time.monotonic() >= ends_at:
            continue
        try:
            stamp = ask_stamp(authority, head.note_text)
        except StampFailed as error:
            if error.reason == "unreachable":
                silent.add(authority.name)
            _failed(principal, authority, head, error.reason, before=stands.failure)
            continue
        _keep(principal, authority, head, stamp)
        kept += 1
    return kept


def _look(
    principal: Principal, places: list[str]
) -> tuple[StoredCheckpoint | None, dict[str, _Standing]]:
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        heads = stored_checkpoints(cursor, principal.tenant_id, limit=1)
        if not heads or not places:
            return None, {}
        cursor.execute(
            _STANDING,
            {
                "tenant": principal.tenant_id,
                "places": places,
                "every": settings.KINDMEM_TIMESTAMP_SECONDS,
            },
        )
        return heads[0], {place: _Standing(*rest) for place, *rest in cursor.fetchall()}


def _keep(principal: Principal, authority: Authority, head: StoredCheckpoint, stamp: Stamp) -> None:
    answer = stamp_text(stamp.answer)
    keep_stamp(
        principal.tenant_slug,
        size=head.size,
        note_text=head.note_text,
        authority=authority.name,
        answer=answer,
        stamped_at=timestamp_text(stamp.at),
    )
    place = authority.place
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        keep_answer(cursor, principal.tenant_id, head, name=place, place=place, answer=answer)


def _failed(
    principal: Principal,
    authority: Authority,
    head: StoredCheckpoint,
    reason: str,
    *,
    before: str | None,
) -> None:
    """Note it for the next turn; say it once for each change."""
    with tenant_context(principal.tenant_id), connection.cursor() as cursor:
        note_failure(cursor, principal.tenant_id, head, name=authority.place, reason=reason)
    if reason != before:
        log.warning(
            "a time stamp authority gave no time stamp",
            tenant=principal.tenant_slug,
            authority=authority.name,
            size=head.size,
            reason=reason,
        )
