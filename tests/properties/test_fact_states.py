"""Whatever is done to a fact, in whatever order: the API agrees with a model of it small enough to be read.

The model: a list of revisions, whether it is deleted, held, kept. After each step every way to read the fact is compared.
"""

import secrets
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memory.canonical import canonical
from tests.builders import ApiClient, TenantKit
from tests.facts.shapes import FACTS, at, refusal, written

contents = st.one_of(
    st.none(), st.integers(-9, 9), st.text(max_size=3).filter(lambda text: "\x00" not in text)
)


class FactStates(RuleBasedStateMachine):
    app: ApiClient
    agent: ApiClient

    def __init__(self) -> None:
        super().__init__()
        self.fact = written(self.app, id=secrets.token_hex(8), content=None)
        self.revisions: list[dict[str, Any]] = [
            {"content": None, "trust": "asserted", "times": self.fact["updatedAt"]}
        ]
        self.is_deleted = self.is_held = self.is_kept = False

    def _expected(self, *, destroys: bool = False, changes: bool = False) -> tuple[int, str] | None:
        if self.is_deleted:
            return 404, "fact-not-found"
        if self.is_held and (destroys or changes):
            return 409, "legal-hold"
        if self.is_kept and destroys:
            return 409, "retention-violation"
        return None

    def _settle(self, answer: Any, expected: tuple[int, str] | None, **revision: Any) -> None:
        if expected is not None:
            assert refusal(answer) == expected
            return
        assert answer.status_code == 200, answer.content
        body = answer.json()
        self.revisions.append({**revision, "times": body["updatedAt"]})
        assert body["version"] == len(self.revisions)

    @rule(content=contents, by_agent=st.booleans())
    def supersede(self, content: Any, by_agent: bool) -> None:
        client = self.agent if by_agent else self.app
        answer = client.post(at(self.fact, "/supersede"), {"content": content})
        trust = "unverified" if by_agent else "asserted"
        last = self.revisions[-1]
        if by_agent and last["trust"] == "verified" and not self.is_deleted:
            if canonical(content) != canonical(last["content"]):
                assert answer.status_code == 202, answer.content
                return
            trust = "verified"
        self._settle(answer, self._expected(changes=True), content=content, trust=trust)

    @rule(offset=st.sampled_from([-1, 1, 3]))
    def supersede_expecting_another_version(self, offset: int) -> None:
        version = max(1, len(self.revisions) + offset)
        if version == len(self.revisions):
            return
        answer = self.app.post(
            at(self.fact, "/supersede"), {"content": 1, "expectVersion": version}
        )
        assert refusal(answer) == (
            (404, "fact-not-found") if self.is_deleted else (409, "fact-changed")
        )

    @rule()
    def verify(self) -> None:
        answer = self.app.post(at(self.fact, "/verify"), {"expectVersion": len(self.revisions)})
        self._settle(
            answer, self._expected(), content=self.revisions[-1]["content"], trust="verified"
        )

    @rule()
    def keep(self) -> None:
        body = {"content": 0, "retention": {"keepDays": 5}}
        expected = self._expected(changes=True)
        self._settle(
            self.app.post(at(self.fact, "/supersede"), body), expected, content=0, trust="asserted"
        )
        self.is_kept = self.is_kept or expected is None

    @rule()
    def hold(self) -> None:
        body = {"content": 1, "retention": {"legalHold": True}}
        expected = self._expected(changes=True)
        self._settle(
            self.app.post(at(self.fact, "/supersede"), body), expected, content=1, trust="asserted"
        )
        self.is_held = self.is_held or expected is None

    @rule()
    def delete(self) -> None:
        expected = self._expected(destroys=True)
        answer = self.app.delete(at(self.fact))
        if expected is not None:
            assert refusal(answer) == expected
        else:
            assert answer.json()["invalidationReason"] == "deleted"
            self.is_deleted = True

    @invariant()
    def every_read_agrees_with_the_model(self) -> None:
        shown = self.app.get(at(self.fact, "/revisions")).json()["data"]
        said = [(one["content"], one["trust"]) for one in reversed(shown)]
        assert said == [(one["content"], one["trust"]) for one in self.revisions]
        open_ones = [one for one in shown if "invalidatedAt" not in one]
        assert len(open_ones) == (0 if self.is_deleted else 1)
        read = self.app.get(at(self.fact))
        assert (read.status_code == 404) == self.is_deleted
        listed = [
            one
            for one in self.app.get(FACTS, {"limit": 200}).json()["data"]
            if one["id"] == self.fact["id"]
        ]
        assert listed == ([] if self.is_deleted else [read.json()])
        for number, revision in list(enumerate(self.revisions, start=1))[-2:]:
            for query in ({"version": number}, {"asOf": revision["times"]}):
                found = self.app.get(at(self.fact), query).json()
                assert (found["version"], found["content"]) == (number, revision["content"])


def test_a_fact_behaves_as_its_model_under_any_sequence_of_acts(live_acme: TenantKit) -> None:
    live_acme.client("admin").put("/v1/memory/types/note", {"keyword": False, "semantic": False})
    machine = type(
        "BoundFactStates",
        (FactStates,),
        {
            "app": live_acme.client("app", projects=["p1"]),
            "agent": live_acme.client("agent", projects=["p1"]),
        },
    )
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=8,
            stateful_step_count=10,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
