"""Append entries to one run, in order, all or none.

One entry is one statement: the head row is made or moved under its lock, the hash is computed there, and the entry is
inserted from what the head returned. A batch takes the head lock once, chains in Python and inserts once. The head row is
locked last and until commit. UNIQUE (tenant, run, sequence), (tenant, id) and (tenant, run, prev hash) make a fork impossible;
a violation aborts.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from memory.access import Principal, check_append
from memory.errors import (
    DomainError,
    EntryIdTaken,
    InvariantViolated,
    RunClosed,
    RunDamaged,
    RunReserved,
    constraint_errors,
)
from memory.hashing import entry_hash, timestamp_text
from memory.ids import new_text_id
from memory.integrity.rows import ERASED
from memory.log_entry import (
    NewEntry,
    PreparedEntry,
    StoredEntry,
    prepare_entry,
    same_content,
)
from memory.log_pseudonyms import entry_to_store, writer_to_store
from memory.models.log import GOVERNANCE_RUN, RESERVED_RUN_PREFIX
from memory.queries.run_log import entries_by_ids
from memory.webhooks.events import tell_of_governance

_STAMP = """to_char({t} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""

# The clock is read once a branch, in a subselect that OFFSET 0 keeps from being merged: read twice, hash and column would differ.
_APPEND_ONE = f"""
WITH head AS (
  INSERT INTO run_head AS h (tenant_id, run_id, next_sequence, head_hash, prev_hash, entry_count, first_at, last_at)
  SELECT %(tenant)s::uuid, %(run)s::text, 1,
         sha256(convert_to(%(before)s::text || repeat('0', 64) || %(after)s::text || '0,"timestamp":"'
                           || {_STAMP.format(t="c.t")} || '"}}', 'UTF8')),
         decode(repeat('00', 32), 'hex'), 1, c.t, c.t
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS t OFFSET 0) c
  ON CONFLICT (tenant_id, run_id) DO UPDATE
  SET (next_sequence, head_hash, prev_hash, entry_count, last_at) = (
    SELECT h.next_sequence + 1,
           sha256(convert_to(%(before)s::text || encode(h.head_hash, 'hex') || %(after)s::text || h.next_sequence::text
                             || ',"timestamp":"' || {_STAMP.format(t="c.t")} || '"}}', 'UTF8')),
           h.head_hash, h.entry_count + 1, c.t
    FROM (SELECT greatest(date_trunc('milliseconds', clock_timestamp()), h.last_at) AS t OFFSET 0) c)
  RETURNING next_sequence - 1 AS sequence, head_hash, prev_hash, last_at
)
INSERT INTO log_entry
  (tenant_id, run_id, sequence, id, kind, scope_text, actor, recorded_at, payload_text, payload_salt, content_hash,
   prev_hash, entry_hash, hash_version, caused_by, writer, writer_role)
SELECT %(tenant)s::uuid, %(run)s::text, head.sequence, %(id)s::text, %(kind)s::text, %(scope)s::text, %(actor)s::text,
       head.last_at, %(payload)s::text, %(salt)s::text, %(content_hash)s::bytea, head.prev_hash, head.head_hash,
       %(version)s::smallint, %(cause)s::text, %(writer)s::text, %(writer_role)s::text
FROM head
RETURNING sequence, {_STAMP.format(t="recorded_at")}, prev_hash, entry_hash
"""

_LOCK_HEAD = """
SELECT next_sequence, head_hash, greatest(date_trunc('milliseconds', clock_timestamp()), last_at)
FROM run_head WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text FOR UPDATE
"""

_APPEND_MANY = """
WITH head AS (
  UPDATE run_head
  SET next_sequence = %(next)s::bigint, head_hash = %(head)s::bytea, prev_hash = %(prev)s::bytea,
      entry_count = %(next)s::bigint, last_at = %(at)s::timestamptz
  WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND next_sequence = %(first)s::bigint
  RETURNING 1
)
INSERT INTO log_entry
  (tenant_id, run_id, sequence, id, kind, scope_text, actor, recorded_at, payload_text, payload_salt, content_hash,
   prev_hash, entry_hash, hash_version, caused_by, writer, writer_role)
SELECT %(tenant)s::uuid, %(run)s::text, e.sequence, e.id, e.kind, e.scope, e.actor, %(at)s::timestamptz, e.payload, e.salt,
       e.content_hash, e.prev_hash, e.entry_hash, %(version)s::smallint, e.cause, %(writer)s::text, %(writer_role)s::text
FROM head, unnest(%(sequences)s::bigint[], %(ids)s::text[], %(kinds)s::text[], %(scopes)s::text[], %(actors)s::text[],
                  %(payloads)s::text[], %(salts)s::text[], %(content_hashes)s::bytea[], %(prev_hashes)s::bytea[],
                  %(entry_hashes)s::bytea[], %(causes)s::text[])
       AS e(sequence, id, kind, scope, actor, payload, salt, content_hash, prev_hash, entry_hash, cause)
ORDER BY e.sequence
"""


_OPEN = """
WITH closed AS (
  SELECT closed_at FROM run_head
  WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text AND closed_at IS NOT NULL FOR UPDATE
)
UPDATE run_head h SET closed_at = NULL FROM closed
WHERE h.tenant_id = %(tenant)s::uuid AND h.run_id = %(run)s::text RETURNING closed.closed_at
"""

_CLOSE = """
UPDATE run_head SET closed_at = %(at)s::timestamptz WHERE tenant_id = %(tenant)s::uuid AND run_id = %(run)s::text
"""


def append_log_entries(
    *, principal: Principal, run_id: str, entries: Sequence[NewEntry]
) -> list[StoredEntry]:
    """The entries as stored, in order. An id that this writer used for the same content returns the stored entry.

    Raises PermissionDenied, RunReserved, EntryIdTaken; InvariantViolated for a payload that claims to attest an erasure.
    """
    if run_id.startswith(RESERVED_RUN_PREFIX):
        raise RunReserved(run_id=run_id)
    for entry in entries:
        check_append(principal, entry.scope)
        if isinstance(entry.payload, dict) and entry.payload.get("type") == ERASED:
            raise InvariantViolated(invariant="erasure-is-attested-by-the-server")
    return _append(principal, run_id, entries)


def append_governance(*, principal: Principal, payload: dict[str, Any]) -> StoredEntry:
    """Log a governance act in the tenant's own run, in the caller's transaction; call it last, since it locks the run's head.

    payload: `{"type": …}` with ids, codes and keyed digests; never values, free text, subject ids or plain hashes.
    What webhooks hear of is queued with it.
    """
    tell_of_governance(principal, payload)
    entry = NewEntry(
        kind="event-emitted",
        scope={"tenantId": principal.tenant_slug},
        id=new_text_id(),
        actor=principal.writer,
        payload=payload,
    )
    return _append(principal, GOVERNANCE_RUN, [entry])[0]


def append_attestations(
    *, principal: Principal, run_id: str, entries: Sequence[NewEntry]
) -> list[StoredEntry]:
    """What the server itself says in a client's run: that payloads of it were erased. For the action that erases, only.

    A closed run takes these, too, and stays closed.
    """
    key: dict[str, Any] = {"tenant": principal.tenant_id, "run": run_id}
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, key)
        was_closed = cursor.fetchone()
    stored = _append(principal, run_id, entries)
    if was_closed is not None:
        with connection.cursor() as cursor:
            cursor.execute(_CLOSE, {**key, "at": was_closed[0]})
    return stored


def _append(principal: Principal, run_id: str, entries: Sequence[NewEntry]) -> list[StoredEntry]:
    prepared = [prepared_for(principal, run_id, entry) for entry in entries]
    if len({one.entry.id for one in prepared}) < len(prepared):
        ids = [one.entry.id for one in prepared]
        raise EntryIdTaken(id=next(one for one in ids if ids.count(one) > 1))
    if len(prepared) == 1:
        return [_append_one(principal, run_id, prepared[0])]
    return _append_many(principal, run_id, prepared)


def prepared_for(principal: Principal, run_id: str, entry: NewEntry) -> PreparedEntry:
    """The entry as this caller's tenant stores it."""
    return prepare_entry(
        entry_to_store(principal, entry), run_id=run_id, hash_version=principal.hash_version
    )


def already_stored(
    *, principal: Principal, run_id: str, entries: Sequence[NewEntry]
) -> list[StoredEntry] | None:
    """What an earlier, identical append with these caller-given ids stored; None when none of the ids is taken.

    Raises EntryIdTaken when an id is taken by anything else.
    """
    found = entries_by_ids(principal.tenant_id, [entry.id for entry in entries])
    if not found:
        return None
    stored: list[StoredEntry] = []
    for entry in entries:
        prepared = prepared_for(principal, run_id, entry)
        one = found.get(entry.id)
        if one is None:
            continue
        if not same_content(one, prepared, run_id, writer_to_store(principal)):
            raise EntryIdTaken(id=entry.id)
        stored.append(one)
    if len(stored) < len(entries):
        # Some are stored and some are new: it is no repetition, and the new ones are not to blame.
        raise EntryIdTaken(id=stored[0].id)
    return stored


def _stored(
    prepared: PreparedEntry,
    run_id: str,
    writer: str,
    sequence: int,
    timestamp: str,
    prev_hash: bytes,
    entry_hash: bytes,
) -> StoredEntry:
    entry = prepared.entry
    return StoredEntry(
        id=entry.id,
        run_id=run_id,
        sequence=sequence,
        kind=entry.kind,
        scope_text=prepared.scope_text,
        actor=entry.actor,
        timestamp=timestamp,
        payload_text=prepared.payload_text,
        payload_salt=prepared.payload_salt,
        content_hash=prepared.content_hash,
        prev_hash=prev_hash,
        entry_hash=entry_hash,
        hash_version=prepared.hash_version,
        caused_by=entry.caused_by,
        payload_erased_at=None,
        writer=writer,
    )


def _append_one(principal: Principal, run_id: str, prepared: PreparedEntry) -> StoredEntry:
    entry = prepared.entry
    writer = writer_to_store(principal)
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "run": run_id,
        "before": prepared.pieces.before,
        "after": prepared.pieces.after,
        "id": entry.id,
        "kind": entry.kind,
        "scope": prepared.scope_text,
        "actor": entry.actor,
        "payload": prepared.payload_text,
        "salt": prepared.payload_salt,
        "content_hash": prepared.content_hash,
        "version": prepared.hash_version,
        "cause": entry.caused_by,
        "writer": writer,
        "writer_role": principal.role,
    }
    with (
        constraint_errors(
            log_entry_id_is_unique=EntryIdTaken(id=entry.id), **_refusals(principal, run_id)
        ),
        connection.cursor() as cursor,
    ):
        cursor.execute(_APPEND_ONE, parameters)
        sequence, timestamp, previous, digest = cursor.fetchone()
    return _stored(prepared, run_id, writer, sequence, timestamp, bytes(previous), bytes(digest))


# Under the head's lock the server itself meets none of these: then what is stored was cut or changed by somebody else.
_SIGNS_OF_DAMAGE = (
    "log_entry_continues_chain",
    "log_entry_pkey",
    "log_entry_has_one_successor",
    "run_head_counts_every_entry",
)


def _refusals(principal: Principal, run_id: str) -> dict[str, DomainError]:
    error = RunDamaged.of(principal.tenant_id, principal.tenant_slug, run_id)
    return {**dict.fromkeys(_SIGNS_OF_DAMAGE, error), "run_head_is_open": RunClosed(run_id=run_id)}


def _append_many(
    principal: Principal, run_id: str, prepared: Sequence[PreparedEntry]
) -> list[StoredEntry]:
    made: list[StoredEntry] = []
    writer = writer_to_store(principal)
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_HEAD, {"tenant": principal.tenant_id, "run": run_id})
        head = cursor.fetchone()
    if head is None:
        # Nothing to lock yet: the first entry makes the head, and holds its lock.
        first, *prepared = prepared
        made.append(_append_one(principal, run_id, first))
        with connection.cursor() as cursor:
            cursor.execute(_LOCK_HEAD, {"tenant": principal.tenant_id, "run": run_id})
            head = cursor.fetchone()
    first_sequence, prev_hash, at = head[0], bytes(head[1]), head[2]
    timestamp = timestamp_text(at)
    chained: list[StoredEntry] = []
    for sequence, one in enumerate(prepared, start=first_sequence):
        digest = entry_hash(one.pieces, prev_hash, sequence, timestamp)
        chained.append(_stored(one, run_id, writer, sequence, timestamp, prev_hash, digest))
        prev_hash = digest
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "run": run_id,
        "first": first_sequence,
        "next": first_sequence + len(chained),
        "head": chained[-1].entry_hash,
        "prev": chained[-1].prev_hash,
        "at": at,
        "version": principal.hash_version,
        "writer": writer,
        "writer_role": principal.role,
        "sequences": [one.sequence for one in chained],
        "ids": [one.id for one in chained],
        "kinds": [one.kind for one in chained],
        "scopes": [one.scope_text for one in chained],
        "actors": [one.actor for one in chained],
        "payloads": [one.payload_text for one in chained],
        "salts": [one.payload_salt for one in chained],
        "content_hashes": [one.content_hash for one in chained],
        "prev_hashes": [one.prev_hash for one in chained],
        "entry_hashes": [one.entry_hash for one in chained],
        "causes": [one.caused_by for one in chained],
    }
    with constraint_errors(**_refusals(principal, run_id)), connection.cursor() as cursor:
        cursor.execute(_APPEND_MANY, parameters)
    return made + chained
