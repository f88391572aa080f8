"""Act on a record by a named correction route: the built-in seven with their effects, and a tenant's own, which
correct the value.

Every route speaks for the record's person, gives a receipt, and can be undone until the tenant's deadline. An outside
route only says where its page is. Source: the product contract, "Built-in correction routes".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from memory.access import Principal
from memory.actions.confirm_record import active_record, confirm_record
from memory.actions.correct import correct
from memory.actions.forget_record import ForgottenRecord, forget_record
from memory.errors import (
    AlreadyDisputed,
    BadInput,
    EvidenceUnresolved,
    PermissionDenied,
    RouteExternal,
    RouteNotFound,
    UnknownField,
)
from memory.queries.records import today_of
from memory.records import fingerprints
from memory.records.acts import Act, Touched, ended, scope_of, with_main
from memory.records.copies import copies_of
from memory.records.correction_target import Correction
from memory.records.ending import (
    Ending,
    FingerprintKind,
    Undo,
    add_fingerprints,
    descendants,
    expire,
    value_digest,
    withhold,
)
from memory.records.guard import check_record_write
from memory.records.pending import put_off
from memory.records.person_word import waits_for_review
from memory.records.receipts import (
    Receipt,
    new_number,
    standing_dispute,
    undo_deadline,
    write_receipt,
)
from memory.records.record import Record
from memory.records.routes import BUILT_IN, Route, find_route
from memory.records.store import (
    find_record,
    find_records,
    lock_inferences,
    readable_record,
    update_records,
)
from memory.records.upcoming import lock_thing_today

FORM_FIELDS: Mapping[str, frozenset[str]] = {
    "confirm": frozenset({"broaden_to"}),
    "fix-value": frozenset({"new_value", "context", "broaden", "expect"}),
    "out-of-date": frozenset({"since"}),
    "wrong-person": frozenset(),
    "dispute": frozenset({"statement"}),
    "forget": frozenset(),
    "never-infer": frozenset({"prefix"}),
}
"""The fields of each built-in route's form, besides `reason` and `evidence`, which all take."""


@dataclass(frozen=True, slots=True)
class Form:
    """What was filled in. `correction`: the form of fix-value, read."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    evidence: tuple[str, str] | None = None
    correction: Correction | None = None


@dataclass(frozen=True, slots=True)
class Acted:
    """The record afterwards, where one may be shown; the receipt; or the id under which the act waits."""

    record: Record | None = None
    receipt: Receipt | None = None
    values: Mapping[str, str | None] = field(default_factory=dict)
    forgotten: ForgottenRecord | None = None
    pending_id: str | None = None


def act_on_route(*, principal: Principal, record_id: str, name: str, form: Form) -> Acted:
    """Do what the route of this name does.

    Raises RecordNotFound, RouteNotFound, RouteExternal, RecordChanged, PermissionDenied, EvidenceUnresolved,
    UnknownField, BadInput, and what `correct`, `confirm_record` and `forget_record` raise.
    """
    record = readable_record(principal, record_id)
    route = find_route(principal, name)
    if route is None:
        raise RouteNotFound
    _check_route(principal, route, record, form)
    if name == "confirm":
        confirmed = confirm_record(
            principal=principal,
            record_id=record_id,
            evidence=form.evidence,
            broaden_to=form.fields.get("broaden_to"),
            reason=form.reason,
        )
        return Acted(
            confirmed.record, confirmed.receipt, confirmed.values, None, confirmed.pending_id
        )
    if name == "forget":
        forgotten = forget_record(
            principal=principal,
            record_id=record_id,
            reason=form.reason,
            evidence=form.evidence,
            with_undo=True,
        )
        return Acted(
            receipt=forgotten.receipt, forgotten=forgotten, pending_id=forgotten.pending_id
        )
    if name in _EFFECTS:
        return _with_effect(principal, record, name, form, _EFFECTS[name])
    if form.correction is None:
        raise BadInput.at("/new_value", "is required")
    corrected = correct(principal=principal, asked=form.correction)
    return Acted(corrected.record, corrected.receipt, corrected.values, None, corrected.pending_id)


def _check_route(principal: Principal, route: Route, record: Record, form: Form) -> None:
    if route.url_template is not None:
        raise RouteExternal(url=route.url(principal.tenant_slug, record.id))
    if route.audience == "admin" and principal.role not in ("admin", "owner"):
        raise PermissionDenied(needs="an admin")
    known = FORM_FIELDS.get(route.name, FORM_FIELDS["fix-value"])
    if unknown := sorted(set(form.fields) - known):
        raise UnknownField.named(*(f"/{name}" for name in unknown))
    widens = form.fields.get("broaden") or form.fields.get("broaden_to") is not None
    if widens and not route.may_broaden:
        raise PermissionDenied(needs="a route that may widen")
    if route.needs_evidence and form.evidence is None:
        raise EvidenceUnresolved


@dataclass(frozen=True, slots=True)
class _Effect:
    """What an effect did: records touched for the history, ids for the log, a statement for the receipt."""

    touched: list[Touched]
    endings: list[Ending]
    named: Mapping[str, Any] = field(default_factory=dict)
    statement: str | None = None


_EffectOf = Callable[[Act, Record, Form, str, Undo | None], _Effect]


def _with_effect(
    principal: Principal, record: Record, name: str, form: Form, effect_of: _EffectOf
) -> Acted:
    check_record_write(principal, record.subject_type, record.subject_id, record.bindings)
    if name == "never-infer":
        lock_inferences(principal.tenant_id, record.subject_type, record.subject_id, shared=False)
    lock_thing_today(principal, record.subject_type, record.subject_id, record.key)
    record = active_record(principal, record.id)
    act = Act(principal, _NAMES[name])
    why = waits_for_review(
        act,
        record.subject_type,
        record.subject_id,
        [form.evidence[1] if form.evidence else None],
        newer_than=record.recorded_at,
        said=form,
    )
    if why is not None:
        body = {**form.fields, "reason": form.reason, "evidence": list(form.evidence or ())}
        if "since" in body:
            body["since"] = body["since"].isoformat()
        return Acted(
            pending_id=put_off(
                Act(principal, "proposed"),
                name=name,
                body=body,
                reason_code=why,
                record_id=record.id,
                subject=(record.subject_type, record.subject_id),
                key=record.key,
            )
        )
    if name == "dispute" and (before := standing_dispute(act.tenant_id, record)) is not None:
        if before.statement != form.fields.get("statement"):
            raise AlreadyDisputed(receipt=before.number)
        return Acted(record=record, receipt=before, values={record.id: record.value_text})
    number, until = new_number(), undo_deadline(act.tenant_id, act.at)
    undo = None if until is None else Undo(number, until)
    effect = effect_of(act, record, form, number, undo)
    entry = act.log(
        recordId=record.id,
        receipt=number,
        route=name,
        recordIds=[one.record_id for one in effect.touched],
        **effect.named,
    )
    act.keep(effect.touched, entry, reason_code=name, reason=form.reason, receipt=number)
    after = find_record(act.tenant_id, record.id)
    is_shown = after is not None and after.review is None
    is_in_use = after is not None and is_shown and after.status == "active"
    receipt = write_receipt(
        act,
        entry,
        number=number,
        route=name,
        record=record,
        before=[record],
        after=[after] if after is not None and is_in_use else [],
        evidence_ref=form.evidence[1] if form.evidence else None,
        reason=form.reason,
        statement=effect.statement,
        undo_until=until,
    )
    values = {record.id: after.value_text} if after is not None and is_shown else {}
    return Acted(record=after if is_shown else None, receipt=receipt, values=values)


def _out_of_date(act: Act, record: Record, form: Form, number: str, undo: Undo | None) -> _Effect:
    """It held until the day before `since`, or before today. What ends on a later day is said by `valid_until`."""
    today = today_of(act.principal)
    since = form.fields.get("since") or today
    if not date.min < since <= today:
        raise BadInput.at("/since", "must be a day that has begun")
    ended_on: date = since - timedelta(days=1)
    if record.valid_until is not None:
        ended_on = min(ended_on, record.valid_until)
    if record.valid_from is None or record.valid_from <= ended_on:
        update_records(act.tenant_id, [record.id], act.at, valid_until=ended_on)
    endings = expire(act.tenant_id, [record.id], act.at, undo=undo)
    return _Effect(_main_first(record, ended(endings, "expired")), endings)


def _wrong_person(act: Act, record: Record, form: Form, number: str, undo: Undo | None) -> _Effect:
    """Out of every read at once, with its copies and what was derived from them, until an admin has looked.

    No agent writes it back before that is undone.
    """
    thing = (record.subject_type, record.subject_id, record.key)
    copies = copies_of(act.tenant_id, thing, [record.value_text], known=[record.id])
    found = [one for one in descendants(act.tenant_id, record.id, *copies) if one.review is None]
    ids = [one.id for one in found]
    digests: list[tuple[bytes, FingerprintKind, str]] = [
        (digest, "retired-value", one.id)
        for one in found
        if (digest := value_digest(act.tenant_id, one))
    ]
    add_fingerprints(act.tenant_id, digests, act.at, number)
    update_records(act.tenant_id, ids, act.at, review="withdrawn", review_reason="wrong-person")
    withhold(act.tenant_id, ids, act.at)
    return _Effect(_main_first(record, ended(found, "active")), found)


def _dispute(act: Act, record: Record, form: Form, number: str, undo: Undo | None) -> _Effect:
    """Agents ask until somebody decides; what was derived from it is no more trusted. One statement stands at a time, and
    what was disputed for itself stays so."""
    statement = form.fields.get("statement")
    if not statement:
        raise BadInput.at("/statement", "is required")
    below = descendants(act.tenant_id, record.id)
    for_themselves = {
        one.id
        for one in find_records(
            act.tenant_id,
            "r.id = ANY(%(ids)s::text[]) AND r.disputed_at IS NOT NULL",
            {"ids": [one.id for one in below if one.id != record.id]},
        )
    }
    found = [one for one in below if one.id not in for_themselves]
    update_records(act.tenant_id, [one.id for one in found], act.at, disputed_at=act.at)
    return _Effect(_main_first(record, ended(found, "active")), found, statement=statement)


def _never_infer(act: Act, record: Record, form: Form, number: str, undo: Undo | None) -> _Effect:
    """No more guesses under the prefix; the ones there are end."""
    prefix = form.fields.get("prefix") or record.key
    if prefix not in fingerprints.prefixes(record.key):
        raise BadInput.at("/prefix", "must be the record's key or one above it")
    digest = fingerprints.of_inference(
        act.tenant_id, record.subject_type, record.subject_id, prefix
    )
    add_fingerprints(act.tenant_id, [(digest, "never-infer", record.id)], act.at, number)
    guesses = find_records(
        act.tenant_id,
        "r.subject_type = %(type)s::text AND r.subject_id = %(subject)s::text AND r.status = 'active' "
        "AND r.source_type = 'agent_inferred' AND (r.key = %(key)s::text OR starts_with(r.key, %(below)s::text))",
        {
            "type": record.subject_type,
            "subject": record.subject_id,
            "key": prefix,
            "below": prefix + ".",
        },
    )
    endings = expire(act.tenant_id, [one.id for one in guesses], act.at, undo=undo)
    return _Effect(
        _main_first(record, ended(endings, "expired")),
        endings,
        named={"inferenceDigest": digest.hex()},
    )


_EFFECTS: Mapping[str, _EffectOf] = {
    "out-of-date": _out_of_date,
    "wrong-person": _wrong_person,
    "dispute": _dispute,
    "never-infer": _never_infer,
}
_NAMES = {
    "out-of-date": "expired",
    "wrong-person": "withdrawn",
    "dispute": "disputed",
    "never-infer": "inference-refused",
}
if set(FORM_FIELDS) != set(BUILT_IN):
    raise RuntimeError("every built-in route has a form")


def _main_first(record: Record, touched: list[Touched]) -> list[Touched]:
    """The record acted on is the main one of the act, touched or not."""
    if all(one.record_id != record.id for one in touched):
        touched = [
            Touched(record.id, record.status, scope_of(record), from_status=record.status),
            *touched,
        ]
    return with_main(touched, record.id)
