"""Erase payloads of log entries: text and salt go, and an entry of the same run attests each, in one transaction.

The next seal adds an erasure leaf. Version 2 then still verifies whole; of a version 1 entry only the links can be checked from
then on, and its unsalted hash goes on allowing guesses: `erasure_effect` says so before. What a hash covers besides (ids, scope,
actor) stays.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_attestations, append_governance
from memory.api import idempotency
from memory.errors import BadInput, RunReserved
from memory.ids import new_text_id
from memory.integrity.rows import erasure_payload
from memory.log_entry import NewEntry
from memory.models.log import RESERVED_RUN_PREFIX

_REASON = re.compile("[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_NAMED_AT_MOST = 100
"""Entries that one act of governance names."""

_FIND = """
SELECT e.run_id, e.sequence, e.id, e.hash_version, e.scope_text FROM log_entry e
WHERE e.tenant_id = %(tenant)s::uuid AND e.id = ANY(%(ids)s::text[]) AND e.payload_text IS NOT NULL
  AND NOT (e.kind = 'event-emitted' AND right(e.payload_text, 25) = ',"type":"payload.erased"}')
ORDER BY e.run_id, e.sequence
"""

_LOCK = (
    "SELECT FROM run_head WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text FOR UPDATE"
)

_STILL_THERE = """
SELECT id FROM log_entry
WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND id = ANY(%(ids)s::text[]) AND payload_text IS NOT NULL
"""

# Erased at the moment that the attesting entry names, so that whoever verifies can hold the one against the other.
_CLEAR = """
UPDATE log_entry e SET payload_text = NULL, payload_salt = NULL, payload_erased_at = c.at
FROM unnest(%(ids)s::text[], %(moments)s::timestamptz[]) AS c(id, at)
WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text AND e.id = c.id AND e.payload_text IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class ErasureEffect:
    """What erasing does to what can be proven. `still_provable`: version 2; `linkage_only`: version 1."""

    still_provable: int
    linkage_only: int

    @property
    def warning(self) -> str | None:
        """What an admin is told before the click; None when nothing is lost."""
        if not self.linkage_only:
            return None
        return (
            f"{self.linkage_only} of these entries were written before erasable payloads were on. After the erasure their "
            "content can no longer be checked, nor their kind, scope, actor and time: only their place in the run. Whoever "
            "guesses a short payload can still test the guess against its hash."
        )


def erasure_effect(principal: Principal, entry_ids: Sequence[str]) -> ErasureEffect:
    """What `erase_payloads` would do. Nothing is changed."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND, {"tenant": principal.tenant_id, "ids": list(entry_ids)})
        versions = [row[3] for row in cursor.fetchall()]
    return ErasureEffect(versions.count(2), versions.count(1))


def erase_payloads(
    *,
    principal: Principal,
    entry_ids: Sequence[str],
    reason_code: str,
    hidden: Mapping[str, str] | None = None,
) -> ErasureEffect:
    """Erase in the caller's transaction. Entries without a payload, and attestations, are passed over; holds are asked before.

    reason_code: kebab-case, at most 64. hidden: ids of an entry's scope that its attestation must not write anew, each with what
    stands for it there. Raises PermissionDenied, BadInput; RunReserved for an entry of the server's own runs.
    """
    principal.needs_role("admin", "owner")
    stands_for = hidden or {}
    if not _REASON.fullmatch(reason_code):
        raise BadInput.at("/reasonCode", "must be 1 to 64 of a-z, 0-9 and -")
    done: list[tuple[str, int, str]] = []
    with connection.cursor() as cursor:
        cursor.execute(_FIND, {"tenant": principal.tenant_id, "ids": list(entry_ids)})
        found = cursor.fetchall()
        for run_id, rows in groupby(found, key=lambda row: str(row[0])):
            if run_id.startswith(RESERVED_RUN_PREFIX):
                raise RunReserved(run_id=run_id)
            wanted = {row[2]: row for row in rows}
            key: dict[str, Any] = {"tenant": principal.tenant_id, "run": run_id}
            cursor.execute(_LOCK, key)
            cursor.execute(_STILL_THERE, {**key, "ids": list(wanted)})
            cleared = {row[0] for row in cursor.fetchall()}
            words = [
                NewEntry(
                    kind="event-emitted",
                    # Who may read the entry may read that it was erased.
                    scope={name: stands_for.get(id, id) for name, id in json.loads(row[4]).items()},
                    id=new_text_id(),
                    actor=principal.writer,
                    payload=erasure_payload(entry_id, reason_code),
                    caused_by=entry_id,
                )
                for entry_id, row in wanted.items()
                if entry_id in cleared
            ]
            if words:
                stored = append_attestations(principal=principal, run_id=run_id, entries=words)
                erased = [str(word.caused_by) for word in stored]
                moments = [word.timestamp for word in stored]
                cursor.execute(_CLEAR, {**key, "ids": erased, "moments": moments})
                idempotency.withhold(principal.tenant_id, f"run:{run_id}")
                done += [
                    (entry_id, wanted[entry_id][3], word.id)
                    for entry_id, word in zip(erased, stored, strict=True)
                ]
    for entry_id, *_ in done:
        idempotency.withhold(principal.tenant_id, f"entry:{entry_id}")
    versions = [version for _, version, _ in done]
    _log(principal, done, reason_code)
    return ErasureEffect(versions.count(2), versions.count(1))


def _log(principal: Principal, done: list[tuple[str, int, str]], reason_code: str) -> None:
    """Acts that name each erased entry with the word that attests it: a word without its act is forged."""
    done = sorted(done)
    for start in range(0, len(done), _NAMED_AT_MOST):
        some = done[start : start + _NAMED_AT_MOST]
        append_governance(
            principal=principal,
            payload={
                "type": "log.payloads-erased",
                "attested": {entry_id: word_id for entry_id, _, word_id in some},
                "entryIds": [entry_id for entry_id, *_ in some],
                "entries": len(some),
                "linkageOnly": sum(version == 1 for _, version, _ in some),
                "reasonCode": reason_code,
            },
        )
