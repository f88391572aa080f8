"""Remember one thing about a subject, or be told what stands in the way.

The order of the questions is in docs/records.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memory.access import Principal
from memory.canonical import canonical
from memory.errors import (
    EvidenceUnresolved,
    Forgotten,
    IdReused,
    InferenceRefused,
    InvariantViolated,
    RecordChanged,
    Retired,
)
from memory.ids import new_text_id
from memory.queries.records import begins_later
from memory.records import clock, fingerprints
from memory.records.acts import Act, Touched, ended, scope_of, scope_text
from memory.records.ending import Ending, supersede
from memory.records.guard import check_record_write, decides_for_people, may_read_record
from memory.records.lineage import Bounds, bounded, lock_parents, tighten_descendants
from memory.records.record import Record
from memory.records.routes import register_unconfigured
from memory.records.rules import (
    bygones,
    check_invariants,
    contradicts_a_person,
    retired_with_nothing_since,
    shadows_a_policy,
)
from memory.records.shape import Draft
from memory.records.slot import Filling, Outcome, filling
from memory.records.store import (
    NewRecord,
    add_observation,
    find_record,
    insert_record,
    link_past,
    lock_inferences,
    lock_lineage,
    update_records,
    waiting_in_slot,
)
from memory.records.superseding import named_targets, refuse_policy
from memory.records.upcoming import lock_thing_today, slot_of
from memory.records.words import Word, find_word, observed_run, person_last_spoke, use_words
from memory.trust.instructions import reads_like_instruction


@dataclass(frozen=True, slots=True)
class Remembered:
    """The record, or the id under which it waits for review."""

    record: Record | None = None
    pending_id: str | None = None


def remember(*, principal: Principal, draft: Draft, is_hearsay: bool = False) -> Remembered:
    """Keep what the draft says, once. `is_hearsay`: whoever writes it only passes on what an agent made of something.

    Raises PermissionDenied, InvariantViolated, IdReused, EvidenceUnresolved, InferenceRefused, LineageForgotten,
    Forgotten, Retired, PolicyNotCorrectable, RecordChanged, LegalHoldActive.
    """
    check_record_write(principal, draft.subject_type, draft.subject_id, draft.bindings)
    check_invariants(principal, draft)
    tenant_id = principal.tenant_id
    lock_thing_today(principal, draft.subject_type, draft.subject_id, draft.key)
    if draft.source_type == "agent_inferred":
        lock_inferences(tenant_id, draft.subject_type, draft.subject_id, shared=True)
    digest = fingerprints.of_request(tenant_id, draft.normal_form())
    if draft.id is not None:
        earlier = find_record(tenant_id, draft.id)
        if earlier is not None:
            return _said_before(principal, draft.id, earlier, digest)
    is_agents = principal.is_agent or is_hearsay
    return _Remembering(Act(principal, "remembered"), draft, digest, is_agents).run()


def _said_before(
    principal: Principal, record_id: str, earlier: Record, digest: bytes
) -> Remembered:
    """The answer to the same request again. The id of what the caller may not see is as used up as any other."""
    is_theirs = may_read_record(
        principal, earlier.subject_type, earlier.subject_id, earlier.bindings
    )
    if (
        not is_theirs
        or earlier.status == "deleted"
        or earlier.request_digest is None
        or bytes(earlier.request_digest) != digest
    ):
        raise IdReused(id=record_id)
    if earlier.review is not None:
        return Remembered(pending_id=earlier.id)
    return Remembered(record=earlier)


@dataclass(slots=True)
class _Remembering:
    act: Act
    draft: Draft
    digest: bytes
    is_agents: bool
    word: Word | None = None
    parents: Sequence[Record] = ()
    bounds: Bounds = field(init=False)
    bindings_text: str = field(init=False)

    def run(self) -> Remembered:
        draft, principal = self.draft, self.act.principal
        self._take_word()
        gone = bygones(self.act.tenant_id, draft)
        if gone.inference_refused and draft.source_type == "agent_inferred":
            raise InferenceRefused
        lock_lineage(self.act.tenant_id, draft.id, draft.derived_from)
        self.parents = lock_parents(self.act.principal, draft.derived_from)
        self._bound()
        if self.is_agents and self._is_no_newer_than(gone.forgotten_at):
            # Before anything else is looked at: the answer is the same whatever the value.
            return self._wait("forgotten")
        if self._is_no_newer_than(retired_with_nothing_since(principal, draft)):
            return self._wait("retired")
        found = filling(
            slot_of(
                self.act.tenant_id,
                (draft.subject_type, draft.subject_id, draft.key),
                self.bounds.level,
                self.bindings_text,
            ),
            draft,
            begins_later=self._begins_later,
            speaks=self._speaks,
            spoken_at=self._spoken_at(draft.captured_at),
        )
        if found.outcome is Outcome.FIRST and found.occupant is not None:
            return self._again(found.occupant)
        if self._is_no_newer_than(gone.value_gone_at):
            if principal.is_agent:
                return self._wait("retired")
            raise Forgotten if gone.value_forgotten_at is not None else Retired
        return self._fill(found)

    @property
    def _begins_later(self) -> bool:
        return begins_later(self.act.principal, self.draft.valid_from)

    @property
    def _speaks(self) -> bool:
        return decides_for_people(self.act.principal) or self.word is not None

    def _take_word(self) -> None:
        draft = self.draft
        if decides_for_people(self.act.principal) or draft.source_type == "agent_inferred":
            return
        self.word = find_word(
            self.act.principal,
            draft.evidence_ref,
            subject_type=draft.subject_type,
            subject_id=draft.subject_id,
            newer_than=person_last_spoke(
                self.act.tenant_id, draft.subject_type, draft.subject_id, draft.key
            ),
        )
        if self.word is None:
            raise EvidenceUnresolved
        use_words(self.act.tenant_id, [self.word.entry_id], act_id=self.act.id, at=self.act.at)

    def _spoken_at(self, captured_at: datetime) -> datetime:
        """When the word was given: an agent's claim counts for nothing, and nobody's reaches into the future."""
        return self.word.spoken_at if self.word is not None else min(captured_at, self.act.at)

    def _is_no_newer_than(self, moment: datetime | None) -> bool:
        if moment is None:
            return False
        is_users_word = self._speaks and self.draft.source_type in (
            "user_stated",
            "user_correction",
        )
        spoken_at = self.draft.captured_at if self.word is None else self.word.spoken_at
        return not (is_users_word and spoken_at > moment)

    def _bound(self) -> None:
        draft = self.draft
        trust = "unverified" if self.act.principal.is_agent else "asserted"
        asked = Bounds(
            level=draft.level,
            bindings=draft.bindings,
            valid_until=draft.valid_until,
            trust=trust,
            retain_value=draft.retain_value,
        )
        self.bounds = bounded(asked, self.parents)
        ends = self.bounds.valid_until
        if ends is not None and draft.valid_from is not None and ends < draft.valid_from:
            raise InvariantViolated(invariant="I10")
        self.bindings_text = canonical(self.bounds.bindings)

    def _again(self, first: Record) -> Remembered:
        """The same thing again is the first record; an inference from a run that it wasn't seen in counts once more."""
        if self.draft.source_type == first.source_type == "agent_inferred":
            run = observed_run(self.act.principal, self.draft.evidence_ref)
            if run is not None and add_observation(self.act.tenant_id, first.id, run, self.act.at):
                seen = first.observations + 1
                update_records(self.act.tenant_id, [first.id], self.act.at, observations=seen)
                return Remembered(record=replace(first, observations=seen))
        return Remembered(record=first)

    def _fill(self, found: Filling) -> Remembered:
        what, occupant = found.outcome, found.occupant
        if occupant is not None and what is Outcome.POLICY:
            raise refuse_policy(self.act.principal, occupant)
        if what is Outcome.PENDING:
            return self._wait("contradicts-a-person")
        if occupant is not None and what is Outcome.CHANGED:
            raise RecordChanged(active_id=occupant.id, differs=["value"])
        named = named_targets(self.act.principal, self.draft)
        if (waits := self._waits_for(named)) is not None:
            return self._wait(waits, would_end=named)
        if occupant is not None and what is Outcome.PAST:
            return self._into_the_past(occupant)
        targets = {one.id: one for one in (*named, *found.ends)}
        # What holds until this begins: its turn comes on that day.
        until_then = set() if what is not Outcome.INSERT or occupant is None else {occupant.id}
        targets = {one: record for one, record in targets.items() if one not in until_then}
        record_id = self.draft.id or new_text_id()
        others = supersede(
            self.act.tenant_id,
            list(targets.values()),
            self.act.at,
            retire_unless=self.draft.value_text if self._speaks else None,
        )
        if {*targets, *until_then, *(one.id for one in others)} & set(self.draft.derived_from):
            # It would outlive what it was derived from.
            raise InvariantViolated(invariant="I10")
        return self._write(record_id, list(targets.values()), others)

    def _waits_for(self, named: Sequence[Record]) -> str | None:
        """Why it waits for review, if it does."""
        if self.bounds.is_pending:
            return "lineage"
        if not self.is_agents:
            return None
        draft = self.draft
        if self.act.principal.is_agent and "org" in (draft.subject_type, draft.level):
            return "wide"
        if reads_like_instruction(draft):
            return "instruction"
        if shadows_a_policy(self.act.tenant_id, draft):
            return "contradicts-a-policy"
        if self.word is not None:
            return None
        if any(
            one.source_type != "agent_inferred" or one.confirmed_at is not None for one in named
        ):
            return "contradicts-a-person"
        if contradicts_a_person(
            self.act.tenant_id, draft, self.bounds.level, self.bindings_text, self.bounds.bindings
        ):
            return "contradicts-a-person"
        return None

    def _wait(self, why: str, *, would_end: Sequence[Record] = ()) -> Remembered:
        """Keep it where nothing reads it until a person decides. The same proposal again is the first one."""
        draft = self.draft
        if draft.id is None:
            waiting = waiting_in_slot(
                self.act.tenant_id,
                self.act.principal.writer,
                (draft.subject_type, draft.subject_id, draft.key),
                self.bounds.level,
                self.bindings_text,
            )
            for one in waiting:
                if one.value_text == draft.value_text:
                    return Remembered(pending_id=one.id)
        record_id = draft.id or new_text_id()
        new = self._new(
            record_id,
            review="pending",
            review_reason=why,
            would_supersede=[one.id for one in would_end] or None,
        )
        act = replace(self.act, name="proposed")
        entry = act.log(recordId=record_id, reason=why)
        insert_record(act.tenant_id, new, language=act.principal.search_language)
        act.keep([_made(new, None)], entry, reason_code=why)
        self._appeared(record_id)
        return Remembered(pending_id=record_id)

    def _into_the_past(self, occupant: Record) -> Remembered:
        """A word about an earlier time: superseded from the start by what holds now, and found by `as_of`."""
        draft = self.draft
        if draft.valid_from is None or occupant.valid_from is None:
            raise RecordChanged(active_id=occupant.id, differs=["value"])
        zone = self.act.principal.time_zone
        begins = clock.start_of(draft.valid_from, zone)
        ends = clock.start_of(occupant.valid_from, zone)
        record_id = draft.id or new_text_id()
        new = self._new(record_id, status="superseded", ended_at=ends)
        register_unconfigured(self.act.principal, new.route, self.act.at)
        entry = self.act.log(
            recordId=record_id,
            supersededBy=occupant.id,
            valueDigest=self.act.digest(new.value_text),
        )
        insert_record(self.act.tenant_id, new, language=self.act.principal.search_language)
        link_past(
            self.act.tenant_id, record_id, superseded_by=occupant.id, begins=begins, ends=ends
        )
        self.act.keep([_made(new, None)], entry, reason_code="earlier")
        return Remembered(record=self._appeared(record_id))

    def _write(
        self, record_id: str, targets: Sequence[Record], others: Sequence[Ending]
    ) -> Remembered:
        new = self._new(record_id)
        act, draft = self.act, self.draft
        register_unconfigured(act.principal, new.route, act.at)
        entry = act.log(
            recordId=record_id,
            source=draft.source_type,
            level=new.level,
            supersedes=[one.id for one in targets],
            expired=[one.id for one in others],
            valueDigest=act.digest(new.value_text),
            word=self.word.entry_id if self.word else None,
        )
        insert_record(
            act.tenant_id,
            new,
            language=act.principal.search_language,
            superseded=[one.id for one in targets],
        )
        act.keep(
            [
                _made(new, targets[0] if targets else None),
                *(
                    Touched(one.id, "superseded", scope_of(one), from_status="active")
                    for one in targets
                ),
                *ended(others, "expired"),
            ],
            entry,
            reason_code=draft.source_type,
        )
        return Remembered(record=self._appeared(record_id))

    def _appeared(self, record_id: str) -> Record | None:
        """The record as written. Under an id of the caller's choice it may be the parent that others were waiting for."""
        record = find_record(self.act.tenant_id, record_id)
        if record is not None and self.draft.id is not None:
            tighten_descendants(self.act.tenant_id, record, self.act.at)
        return record

    def _new(self, record_id: str, **more: Any) -> NewRecord:
        draft, principal, at = self.draft, self.act.principal, self.act.at
        counts = decides_for_people(principal)
        is_guess = draft.source_type == "agent_inferred"
        confirmed = draft.last_confirmed_at if counts else None
        return NewRecord.saying(
            draft,
            by=principal,
            at=at,
            id=record_id,
            observations=draft.observations if counts else 1,
            level=self.bounds.level,
            bindings_text=self.bindings_text,
            valid_until=self.bounds.valid_until,
            retain_value=self.bounds.retain_value,
            trust=self.bounds.trust,
            confirmed_at=min(confirmed, at) if confirmed is not None else None,
            disputed_at=at if self.bounds.is_disputed else None,
            request_digest=self.digest,
            observed_run=self._observed_run() if is_guess else None,
            is_upcoming=self._begins_later,
            **more,
        )

    def _observed_run(self) -> str:
        """Also a run that there is not: the same reference again is the same observation."""
        ref = self.draft.evidence_ref
        return observed_run(self.act.principal, ref) or ref


def _made(new: NewRecord, before: Record | None) -> Touched:
    return Touched(
        record_id=new.id,
        to_status=new.status,
        scope_text=scope_text(new.level, new.bindings_text),
        from_record_id=before.id if before is not None else None,
        is_main=True,
    )
