"""Receipts: what a person gets for an act on what is remembered, and what its undo needs to know.

A receipt keeps ids, scopes and keyed digests. Values go into an answer while they are there; a receipt read later
shows what is left.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from memory.api.json_text import Raw
from memory.canonical import canonical
from memory.instants import instant_text
from memory.log_entry import StoredEntry
from memory.records import fingerprints
from memory.records.acts import Act, scope_of
from memory.records.record import Record

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: nothing in it is mistaken for something else when it is read aloud."""


def new_number() -> str:
    """A receipt number such as R-7K3M-9QTZ-0V4B: 60 random bits."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    return f"R-{letters[:4]}-{letters[4:8]}-{letters[8:]}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """`before_state`: what an undo in place puts back; scope texts are canonical `{bindings, level}`.

    `took_along`: how many other records ended by the act, or were set aside or disputed with the one that it was on.
    """

    number: str
    act_id: UUID
    route: str
    record_id: str
    before_ids: list[str]
    after_ids: list[str]
    before_state: str
    scope_text: str
    actor: str
    actor_role: str
    reason: str | None
    statement: str | None
    evidence_ref: str
    log_entry_id: str
    log_entry_hash: bytes
    made_at: datetime
    undo_until: datetime | None
    undone_at: datetime | None = None
    undone_by: str | None = None
    took_along: int = 0

    @property
    def state_before(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.before_state)
        return parsed

    @property
    def is_elsewhere(self) -> bool:
        """Whether it applies elsewhere than before."""
        before, after = self.state_before, json.loads(self.scope_text)
        return any(before[name] != after[name] for name in ("level", "bindings"))

    def changed(self, values: Mapping[str, str | None]) -> list[str]:
        """What the act changed, in codes that docs/records.md lists."""
        if self.route == "confirm":
            lifted = ["dispute-lifted"] if self.state_before.get("disputed_at") is not None else []
            return ["confirmed", *lifted, *(["scope"] if self.is_elsewhere else [])]
        if self.route == "never-infer":
            return ["inferences-refused", *([] if self.after_ids else ["ended"])]
        if self.route in _CHANGED:
            return [_CHANGED[self.route]]
        said = [values.get(side[0]) for side in (self.before_ids, self.after_ids) if side]
        is_same = len(said) == 2 and said[0] is not None and said[0] == said[1]
        elsewhere = ["scope"] if self.before_ids and self.is_elsewhere else []
        return [*([] if is_same else ["value"]), *elsewhere]

    def wire(self, values: Mapping[str, str | None]) -> dict[str, Any]:
        """The receipt; `values`: canonical texts by record id, as far as they may be shown."""
        state = self.state_before
        scope_before = {"level": state["level"], "bindings": state["bindings"]}
        return {
            "number": self.number,
            "route": self.route,
            "record_id": self.record_id,
            "scope": Raw(self.scope_text),
            "changed": self.changed(values),
            "took_along": self.took_along,
            "before": _side(self.before_ids, values, scope_before),
            "after": _side(self.after_ids, values, Raw(self.scope_text)),
            "at": instant_text(self.made_at),
            "by": self.actor,
            "evidence_ref": self.evidence_ref,
            "log_entry_id": self.log_entry_id,
            "log_entry_hash": "sha256:" + self.log_entry_hash.hex(),
            "undo_until": _instant(self.undo_until),
            **({"reason": self.reason} if self.reason is not None else {}),
            **({"statement": self.statement} if self.statement is not None else {}),
            **(
                {"undone_at": _instant(self.undone_at), "undone_by": self.undone_by}
                if self.undone_at is not None
                else {}
            ),
        }


_CHANGED = {
    "out-of-date": "ended",
    "wrong-person": "withdrawn",
    "dispute": "disputed",
    "forget": "forgotten",
    "undo": "undone",
}
CHANGES = (
    "value",
    "scope",
    "confirmed",
    "dispute-lifted",
    "inferences-refused",
    *_CHANGED.values(),
)
"""What an act may change."""


def _side(
    record_ids: Sequence[str], values: Mapping[str, str | None], scope: Any
) -> dict[str, Any] | None:
    """The record before, or after: the first one named, with the others' ids where an act was on several."""
    if not record_ids:
        return None
    first, *others = record_ids
    text = values.get(first)
    side = {"record_id": first, "value": None if text is None else Raw(text), "scope": scope}
    return {**side, "others": others} if others else side


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


def state_of(record: Record) -> str:
    """What an undo in place puts back."""
    return canonical(
        {
            "level": record.level,
            "bindings": record.bindings,
            "broadened": record.broadened,
            "confirmed_at": _instant(record.confirmed_at),
            "disputed_at": _instant(record.disputed_at),
            "valid_until": None if record.valid_until is None else record.valid_until.isoformat(),
        }
    )


def undo_deadline(tenant_id: UUID, at: datetime) -> datetime | None:
    """Until when an act of now can be undone; None where the tenant wants no undo."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT undo_hours FROM tenant WHERE id = %s::uuid", [tenant_id])
        hours = cursor.fetchone()[0]
    return at + timedelta(hours=hours) if hours else None


_COLUMNS = tuple(field.name for field in fields(Receipt) if field.name != "took_along")
_TABLE_COLUMNS = ", ".join(
    "before_scope_text" if name == "before_state" else name for name in _COLUMNS
)

_TOOK_ALONG = """(
  SELECT count(*) FROM record_act a WHERE a.tenant_id = receipt.tenant_id AND a.act_id = receipt.act_id
    AND a.record_id <> receipt.record_id AND NOT a.is_main
    AND (a.to_status IN ('expired', 'deleted') OR receipt.route IN ('wrong-person', 'dispute')))"""


def write_receipt(
    act: Act,
    entry: StoredEntry,
    *,
    number: str,
    route: str,
    record: Record,
    before: Sequence[Record] = (),
    after: Sequence[Record] = (),
    evidence_ref: str | None = None,
    reason: str | None = None,
    statement: str | None = None,
    undo_until: datetime | None = None,
) -> Receipt:
    """Write the receipt of an act, whose history is kept already. `record`: the one acted on, as it was; the scope is that of
    what came after."""
    receipt = Receipt(
        number=number,
        act_id=act.id,
        route=route,
        record_id=record.id,
        before_ids=[one.id for one in before],
        after_ids=[one.id for one in after],
        before_state=state_of(record),
        scope_text=scope_of(after[0] if after else record),
        actor=act.principal.writer,
        actor_role=act.principal.role,
        reason=reason,
        statement=statement,
        evidence_ref=evidence_ref or entry.id,
        log_entry_id=entry.id,
        log_entry_hash=entry.entry_hash,
        made_at=act.at,
        undo_until=undo_until,
    )
    digests = [
        fingerprints.of_text(act.tenant_id, side[0].value_text)
        if side and side[0].value_text is not None
        else None
        for side in (before, after)
    ]
    values = [getattr(receipt, name) for name in _COLUMNS]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO receipt (tenant_id, before_digest, after_digest, {_TABLE_COLUMNS}) "
            "VALUES (%s::uuid, %s::bytea, %s::bytea, %s::text, %s::uuid, %s::text, %s::text, %s::text[], %s::text[], "
            "%s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::bytea, "
            f"%s::timestamptz, %s::timestamptz, %s::timestamptz, %s::text) RETURNING {_TOOK_ALONG}",
            [act.tenant_id, *digests, *values],
        )
        return replace(receipt, took_along=cursor.fetchone()[0])


def find_receipt(tenant_id: UUID, number: str, *, lock: bool = False) -> Receipt | None:
    """The receipt with this number, whoever may see it."""
    return _one(tenant_id, "number = %s::text" + (" FOR UPDATE" if lock else ""), number)


def receipt_of_forgetting(tenant_id: UUID, record_id: str) -> Receipt | None:
    """The receipt of the act that forgot a record."""
    return _one(
        tenant_id,
        "record_id = %s::text AND route = 'forget' ORDER BY made_at DESC, number LIMIT 1",
        record_id,
    )


def standing_dispute(tenant_id: UUID, record: Record) -> Receipt | None:
    """The receipt of what the record's person said against it, as long as nobody decided on it or undid it."""
    return _one(
        tenant_id,
        "record_id = %s::text AND route = 'dispute' AND undone_at IS NULL AND made_at = %s::timestamptz",
        record.id,
        record.disputed_at,
    )


def _one(tenant_id: UUID, condition: str, *parameters: str | datetime | None) -> Receipt | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_TABLE_COLUMNS}, {_TOOK_ALONG} FROM receipt WHERE tenant_id = %s::uuid AND {condition}",
            [tenant_id, *parameters],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    named = dict(zip((*_COLUMNS, "took_along"), row, strict=True))
    return Receipt(**{**named, "log_entry_hash": bytes(named["log_entry_hash"])})


def mark_undone(tenant_id: UUID, number: str, *, by: str, at: datetime) -> None:
    """Say of a receipt that it was undone, and by which other one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE receipt SET undone_at = %s::timestamptz, undone_by = %s::text "
            "WHERE tenant_id = %s::uuid AND number = %s::text",
            [at, by, tenant_id, number],
        )
