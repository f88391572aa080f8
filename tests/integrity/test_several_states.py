"""Where several states apply, the answer is the first of docs/integrity.md's order; each ends a command with its own code."""

import itertools
import re

from memory.integrity.states import EXIT_CODES, State, Tampering, overall, state_of
from tests.builders import TenantKit
from tests.completeness.sources import ROOT
from tests.integrity.logs import attacker, fill, seal, verified_twice, writer
from tests.integrity.test_erasure import erase

ORDER = [
    State.TAMPERED,
    State.NOT_COMPLETE,
    State.LINKAGE_ONLY,
    State.ERASED_ATTESTED,
    State.VERIFIED_UNSEALED_TAIL,
    State.UNANCHORED,
    State.VERIFIED,
]


def test_the_first_state_that_applies_is_the_answer() -> None:
    for applies in itertools.product((False, True), repeat=6):
        is_tampered, is_part, linkage_only, erased, unsealed, is_unanchored = applies
        said = state_of(
            is_tampered=is_tampered,
            is_complete=not is_part,
            entries=9,
            linkage_only=int(linkage_only),
            erased=int(erased),
            unsealed=int(unsealed),
            is_anchored=not is_unanchored,
        )
        first = [state for state, is_so in zip(ORDER, applies, strict=False) if is_so]
        assert said is (first or ORDER[-1:])[0], applies


def test_the_worst_run_speaks_for_a_tenant_and_none_is_no_success() -> None:
    for worse, better in itertools.combinations(ORDER, 2):
        assert overall([better, worse, better]) is worse
    assert overall([State.NOTHING_TO_VERIFY, State.VERIFIED]) is State.VERIFIED
    assert overall([]) is State.NOTHING_TO_VERIFY


def test_every_state_ends_with_the_code_that_is_documented_and_no_two_with_one() -> None:
    page = (ROOT / "docs" / "integrity.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| .+ \| (\d+) \|$", page, re.M)
    assert {State(name): int(code) for name, code in rows} == EXIT_CODES
    assert set(EXIT_CODES) == set(State)
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)
    assert [state for state, code in EXIT_CODES.items() if code == 0] == [State.VERIFIED]
    assert not {1, 2} & set(EXIT_CODES.values())


def test_a_run_with_everything_at_once_says_the_worst_and_counts_the_rest(
    live_acme: TenantKit, superuser_url: str
) -> None:
    of_version_1 = fill(live_acme, 4)
    of_version_2 = fill(live_acme, 4, by=writer(live_acme, hash_version=2))
    seal(live_acme)
    erase(live_acme, of_version_2[1])
    report = verified_twice(live_acme)
    assert (report.state, report.erased, report.unsealed) == (State.ERASED_ATTESTED, 1, 1)
    erase(live_acme, of_version_1[1])
    report = verified_twice(live_acme)
    counts = (report.erased, report.linkage_only, report.unsealed)
    assert (report.state, counts) == (State.LINKAGE_ONLY, (2, 1, 2))
    assert verified_twice(live_acme, first=0, last=6).state is State.NOT_COMPLETE
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET actor = 'user:eve' WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 6",
            [live_acme.id],
        )
    for report in (verified_twice(live_acme), verified_twice(live_acme, first=0, last=6)):
        assert report.state is State.TAMPERED
        assert report.first_bad is not None
        assert (report.first_bad.tampering, report.first_bad.sequence) == (Tampering.CONTENT, 6)
