"""What a report says in words is true of what it is about: of every attack that the chain sees, and of every good state."""

from typing import Any

import pytest

from corrections.verdict_words import compared, does_not_prove, outside, proves, verdict
from corrections.words import TAMPERINGS
from memory.hashing import tag
from memory.integrity.states import State
from tests.integrity.attacks import ATTACKS, Attack, honest_rows
from tests.integrity.test_chain import report_on

SEEN = [attack for attack in ATTACKS if attack.verdict is not None]
PROOF = "byte for byte"


@pytest.mark.parametrize("attack", SEEN, ids=lambda attack: attack.name)
def test_of_damage_nothing_is_said_to_be_proved_but_the_damage(attack: Attack) -> None:
    for version in (1, 2):
        if attack.expected(version) is None:
            continue
        rows, head = attack.make(honest_rows(version))
        report = report_on(rows, head).as_wire()
        bad = report["firstBad"]
        said = " ".join(proves(report))
        assert PROOF not in said
        assert "is not what was written" in said
        assert f"entry #{bad['sequence']} is the first place" in said
        assert ("agree with each other" in said) == (bad["sequence"] > 0)
        assert "others may follow" in " ".join(does_not_prove(report))
        assert verdict(report) == f"Broken at entry #{bad['sequence']}"
        assert bad["class"] in TAMPERINGS


@pytest.mark.parametrize("attack", SEEN, ids=lambda attack: attack.name)
def test_each_side_of_what_differs_is_called_what_it_is(attack: Attack) -> None:
    rows, head = attack.make(honest_rows(2))
    bad = report_on(rows, head).as_wire().get("firstBad")
    if bad is None:
        return  # version 2 has no such attack
    before = {row.sequence: tag(row.entry_hash) for row in rows}.get(bad["sequence"] - 1)
    side = compared(bad, before)
    assert (side.expected, side.found) == (bad["expected"], bad["found"])
    words = str(side.expected_words), str(side.found_words)
    assert "Expected" not in words
    if side.are_hashes and bad["class"] == "content":
        assert words == ("Stored hash", "Recomputed from what is stored")
        stored = {tag(row.entry_hash) for row in rows} | {
            tag(row.content_hash) for row in rows if row.content_hash
        }
        assert side.expected in stored
    if attack.name in ("prevHash edited", "7 two rows with one prevHash"):
        assert words == ("Hash of the entry before it", "Hash that it names")
    if attack.name in ("head row's hash edited", "head row's link edited"):
        assert words == ("The run's head says", "The last entry says")


def report(state: State, **more: Any) -> dict[str, Any]:
    return {
        "state": state.value, "runId": "r", "from": 0, "to": 7, "entries": 8, "unsealed": 0, "erased": 0, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("made", "proved", "left"),
    [
        (report(State.VERIFIED), "Up to #7 they are also what the signed checkpoints say", "server says it of itself"),
        (report(State.VERIFIED_UNSEALED_TAIL, unsealed=3), "Up to #4", "the last 3 entries, which no signed checkpoint"),
        (report(State.VERIFIED_UNSEALED_TAIL, unsealed=8), PROOF, "the last 8 entries"),
        (report(State.ERASED_ATTESTED, erased=2), "those with their payload", "what erased payloads said"),
        (report(State.LINKAGE_ONLY, erased=1, unprotected={"entries": 1}), "those with their payload", "nothing vouches for"),
        (report(State.UNANCHORED), PROOF, "not in the anchor file"),
        (report(State.NOT_COMPLETE), PROOF, "were not read"),
    ],
    ids=lambda one: one["state"] if isinstance(one, dict) else "",
)  # fmt: skip
def test_each_good_state_says_what_it_proves_and_what_it_leaves_open(
    made: dict[str, Any], proved: str, left: str
) -> None:
    assert proved in " ".join(proves(made))
    assert left in " ".join(does_not_prove(made))


def test_what_no_checkpoint_covers_is_not_said_to_be_under_one() -> None:
    assert "checkpoints" not in " ".join(proves(report(State.VERIFIED_UNSEALED_TAIL, unsealed=8)))


def test_where_nothing_was_read_nothing_is_proved() -> None:
    nothing = report(State.NOTHING_TO_VERIFY, to=-1, entries=0)
    assert proves(nothing) == ["It proves nothing: no entry was read."]
    assert does_not_prove(nothing) == []


def test_what_was_there_is_told_from_what_came_since() -> None:
    part = report(State.NOT_COMPLETE, **{"from": 2, "to": 4, "runTo": 7})
    told = outside(part, 11)
    assert (told.before, told.there, told.since) == (2, 3, 3)
    unknown = outside(report(State.NOT_COMPLETE, **{"from": 2, "to": 4}), 11)
    assert (unknown.there, unknown.since, unknown.after) == (None, 0, 6)
    whole = outside(report(State.VERIFIED), 11)
    assert (whole.there, whole.since) == (0, 3)
    assert outside(part, None).after == 0
