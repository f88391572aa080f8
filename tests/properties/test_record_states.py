"""Whatever is done to records, in whatever order: the rules hold, explain answers, and nothing forgotten is found again.

Values are unique tokens, so that finding one anywhere is finding that value.
"""

import itertools
import json
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memory.housekeeping import expire
from memory.models.record import LEVELS
from memory.records import clock
from memory.records.bindings import covers
from memory.records.lineage import TRUST
from memory.records.record import Record
from memory.records.store import find_records
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.records.builders import a_record, an_inference, valid
from tests.records.conftest import RECORDS, Memory

KEYS = st.sampled_from(["k.one", "k.two"])
PEOPLE = st.sampled_from(["ann", "bob"])
BINDINGS = st.sampled_from([{}, {"t": 1}, {"t": 1, "u": True}, {"t": "1"}])
PICK = st.integers(0, 30)
FORWARD = {"active": 0, "superseded": 1, "expired": 1, "deleted": 2}
_tokens = itertools.count()


class RecordStates(RuleBasedStateMachine):
    tenant: TenantKit
    app: Memory
    agent: Memory

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.forgotten: dict[str, tuple[str, str]] = {}
        self.statuses: dict[str, str] = {}
        self.receipts: list[str] = []
        self.days = 0
        self.prefix = f"s{next(_tokens)}-"

    # ---- helpers of the machine ---------------------------------------------------------------------------------------------

    def _value(self) -> str:
        return f"zq{next(_tokens)}x"

    def _pick(self, number: int) -> str | None:
        return self.ids[number % len(self.ids)] if self.ids else None

    def _today(self) -> AbstractContextManager[None]:
        return clock.fixed_at(datetime.now(UTC) + timedelta(days=self.days))

    def _post(self, memory: Memory, path: str, body: Any, *statuses: int) -> Any:
        with self._today():
            answer = memory.client.post(path, body)
        assert answer.status_code in statuses, (path, body, answer.status_code, answer.content)
        return answer.json()

    def _note(self, body: dict[str, Any]) -> None:
        if "id" in body and "lifecycle" in body and body["id"] not in self.ids:
            self.ids.append(valid(body)["id"])

    def _receipt(self, body: dict[str, Any]) -> None:
        if body.get("receipt", {}).get("undo_until"):
            self.receipts.append(body["receipt"]["number"])

    def _records(self) -> list[Record]:
        with tenant_context(self.tenant.id):
            return find_records(
                self.tenant.id, "starts_with(r.subject_id, %(prefix)s)", {"prefix": self.prefix}
            )

    # ---- acts ---------------------------------------------------------------------------------------------------------------

    @rule(
        key=KEYS,
        person=PEOPLE,
        bindings=BINDINGS,
        level=st.sampled_from(["instance", "task", "user"]),
        begins=st.sampled_from([None, None, None, -400, 0, 1, 2]),
    )
    def an_app_remembers(
        self, key: str, person: str, bindings: Any, level: str, begins: int | None
    ) -> None:
        """Of now, of once, or of a day to come."""
        today = datetime.now(UTC).date() + timedelta(days=self.days)
        body = a_record(
            self._value(),
            key=key,
            subject=self.prefix + person,
            bindings=bindings,
            level=level,
            valid_from=None if begins is None else str(today + timedelta(days=begins)),
        )
        self._note(self._post(self.app, RECORDS, body, 201))

    @rule(key=KEYS, person=PEOPLE, bindings=BINDINGS, parent=PICK, ahead=st.booleans())
    def an_app_derives(
        self, key: str, person: str, bindings: Any, parent: int, ahead: bool
    ) -> None:
        """From a record that is there, or from one that may come."""
        above = f"{self.prefix}-later-{parent % 3}" if ahead else self._pick(parent)
        if above is not None:
            body = a_record(
                self._value(),
                key=f"{key}.derived",
                subject=self.prefix + person,
                bindings=bindings,
                derived_from=[above],
            )
            self._note(self._post(self.app, RECORDS, body, 201, 202, 422))

    @rule(key=KEYS, number=PICK, person=PEOPLE, parent=PICK, of_agent=st.booleans())
    def a_parent_comes_later(
        self, key: str, number: int, person: str, parent: int, of_agent: bool
    ) -> None:
        build = an_inference if of_agent else a_record
        body = build(
            self._value(),
            key=f"{key}.parent",
            id=f"{self.prefix}-later-{number % 3}",
            subject=self.prefix + person,
            level="task",
            derived_from=[self.ids[parent % len(self.ids)]] if self.ids and parent % 2 else [],
        )
        memory = self.agent if of_agent else self.app
        self._note(self._post(memory, RECORDS, body, 201, 202, 409, 422))

    @rule(key=KEYS, person=PEOPLE, bindings=BINDINGS)
    def an_agent_infers(self, key: str, person: str, bindings: Any) -> None:
        body = an_inference(self._value(), key=key, subject=self.prefix + person, bindings=bindings)
        self._note(self._post(self.agent, RECORDS, body, 201, 202, 409))

    @rule(bindings=BINDINGS, number=PICK)
    def an_agent_infers_what_was_forgotten(self, bindings: Any, number: int) -> None:
        if self.forgotten:
            value = sorted(self.forgotten)[number % len(self.forgotten)]
            subject, key = self.forgotten[value]
            body = an_inference(value, key=key, subject=subject, bindings=bindings)
            self._post(self.agent, RECORDS, body, 202, 409)

    @rule(key=KEYS, person=PEOPLE, bindings=BINDINGS, broaden=st.booleans())
    def a_person_corrects(self, key: str, person: str, bindings: Any, broaden: bool) -> None:
        context: dict[str, Any] = {"user_id": self.prefix + person, "case": 1, **bindings}
        if broaden:
            context["broaden_to"] = {"level": "user", "bindings": {}}
        body = {"key": key, "new_value": self._value(), "context": context, "broaden": broaden}
        answer = self._post(self.app, "/v1/memory/correct", body, 201)
        self._note(answer["record"])
        self._receipt(answer)

    @rule(number=PICK, widen=st.booleans())
    def a_person_confirms(self, number: int, widen: bool) -> None:
        if (record_id := self._pick(number)) is not None:
            form = {"broaden_to": {"level": "user", "bindings": {}}} if widen else {}
            path = f"{RECORDS}/{record_id}/routes/confirm"
            self._receipt(self._post(self.app, path, form, 200, 404, 409, 422))

    @rule(number=PICK, with_undo=st.booleans())
    def a_person_forgets(self, number: int, with_undo: bool) -> None:
        if (record_id := self._pick(number)) is None:
            return
        before = {one.id: one for one in self._records()}
        path = f"{RECORDS}/{record_id}" + ("/routes/forget" if with_undo else "/forget")
        answer = self._post(self.app, path, {}, 200, 404)
        if "error" in answer:
            return
        after = {one.id: one for one in self._records()}
        served = {
            one.value_text
            for one in after.values()
            if one.status == "active" and one.review is None
        }
        for one_id, one in before.items():
            # A proposal that goes along may have said what stands elsewhere by a person's word.
            is_proposal_of_served = one.review is not None and one.value_text in served
            if after[one_id].status == "deleted" and one.value_text and not is_proposal_of_served:
                self.forgotten[json.loads(one.value_text)] = (one.subject_id, one.key)
        if with_undo:
            self._receipt(answer)

    @rule(
        number=PICK, name=st.sampled_from(["out-of-date", "wrong-person", "dispute", "never-infer"])
    )
    def a_person_takes_another_route(self, number: int, name: str) -> None:
        if (record_id := self._pick(number)) is not None:
            form = {"statement": "no"} if name == "dispute" else {}
            path = f"{RECORDS}/{record_id}/routes/{name}"
            self._receipt(self._post(self.app, path, form, 200, 404, 409))

    @rule(number=PICK)
    def a_person_undoes(self, number: int) -> None:
        if self.receipts:
            receipt = self.receipts.pop(number % len(self.receipts))
            answer = self._post(self.app, f"/v1/memory/receipts/{receipt}/undo", {}, 200, 409)
            for one in answer.get("records", ()):
                self._note(one)
                # What its person took back is theirs again.
                self.forgotten.pop(one["value"], None)

    @rule(bindings=BINDINGS)
    def something_happens(self, bindings: Any) -> None:
        self._post(self.app, "/v1/memory/events", {"type": "moved", **bindings}, 200)

    @rule(days=st.integers(0, 2))
    def days_pass(self, days: int) -> None:
        self.days += days
        with self._today():
            expire()
        today = datetime.now(UTC).date() + timedelta(days=self.days)
        for one in self._records():
            is_served = one.status == "active" and one.review is None
            if is_served and one.is_upcoming:
                assert one.valid_from is not None
                assert one.valid_from > today

    # ---- what always holds --------------------------------------------------------------------------------------------------

    @invariant()
    def the_rules_hold(self) -> None:
        records = {one.id: one for one in self._records()}
        slots = [
            (
                one.subject_type,
                one.subject_id,
                one.key,
                one.level,
                one.bindings_text,
                one.is_upcoming,
            )
            for one in records.values()
            if one.status == "active" and one.review is None
        ]
        assert len(slots) == len(set(slots))
        for one in records.values():
            assert FORWARD[one.status] >= FORWARD[self.statuses.get(one.id, "active")]
            self.statuses[one.id] = one.status
            assert (one.status == "superseded") <= (one.superseded_by is not None)
            assert one.status != "deleted" or one.value_text is None
            if one.source_type == "user_correction" and not one.broadened:
                assert one.level == "instance"
            if one.source_type == "agent_inferred" and one.level not in ("instance", "task"):
                assert one.confirmed_at is not None
            for above in one.derived_from:
                self._is_within(one, records.get(above))
        assert set(self.statuses) == set(records)

    def _is_within(self, child: Record, parent: Record | None) -> None:
        if parent is None or child.status != "active" or child.review is not None:
            return
        assert parent.status == "active", (child.id, parent.id, parent.status)
        assert parent.review is None
        assert LEVELS.index(child.level) <= LEVELS.index(parent.level)
        assert covers(parent.bindings, child.bindings)
        assert TRUST.index(child.trust) <= TRUST.index(parent.trust)
        if parent.valid_until is not None:
            assert child.valid_until is not None
            assert child.valid_until <= parent.valid_until

    @invariant()
    def nothing_forgotten_is_found(self) -> None:
        if not self.forgotten:
            return
        with tenant_context(self.tenant.id), connection.cursor() as cursor:
            cursor.execute(
                "SELECT v.value_text FROM record_value v JOIN memory_record r USING (tenant_id) "
                "WHERE r.id = v.record_id AND r.review IS NULL AND starts_with(r.subject_id, %s)",
                [self.prefix],
            )
            assert not self.forgotten.keys() & {json.loads(row[0]) for row in cursor.fetchall()}

    def teardown(self) -> None:
        """Every door, once everything is done."""
        with self._today():
            self._look()

    def _look(self) -> None:
        doors: list[Any] = []
        for person in ("ann", "bob"):
            who = self.prefix + person
            for status in FORWARD:
                doors.append(self.app.list(subject_id=who, status=status, limit=200))
            for context in ({}, {"t": 1}, {"t": 1, "u": True, "case": 1}):
                body = {"key_prefix": "k", "context": {"user_id": who, **context}}
                doors.append(self._post(self.agent, "/v1/memory/recall", body, 200))
        for record_id in self.ids:
            answer = self.app.client.get(f"{RECORDS}/{record_id}")
            assert answer.status_code in (200, 404)
            if answer.status_code == 200:
                doors += [
                    valid(answer.json()),
                    self.app.explain(record_id),
                    self.app.history(record_id),
                ]
        for value in sorted(self.forgotten):
            assert self.app.list(q=value) == []
            assert value not in str(doors)


def machine_of(tenant: TenantKit) -> type[RuleBasedStateMachine]:
    return type(
        "BoundRecordStates",
        (RecordStates,),
        {
            "tenant": tenant,
            "app": Memory(tenant.client("app", everything=True)),
            "agent": Memory(tenant.client("agent", everything=True)),
        },
    )


def run(tenant: TenantKit, *, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine_of(tenant),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_the_rules_of_records_hold_under_any_sequence_of_acts(live_acme: TenantKit) -> None:
    run(live_acme, examples=8, steps=14)


@pytest.mark.full
def test_the_rules_of_records_hold_under_many_long_sequences_of_acts(live_acme: TenantKit) -> None:
    run(live_acme, examples=120, steps=30)
