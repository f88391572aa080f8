"""Every attack that a chain with its head row can see is named with class and place."""

import random

import pytest

from memory.hashing import ZERO_HASH, tag
from memory.integrity.chain import REORDER_WINDOW, ChainVerifier
from memory.integrity.rows import EntryRow, HeadRow, Progress
from memory.integrity.states import ChainReport, FirstBad, State, Tampering
from tests.integrity.attacks import (
    ATTACKS,
    FORGED,
    OTHER_RUN,
    RUN,
    TENANT,
    Attack,
    chained,
    entry,
    head_of,
    honest_rows,
    with_erasure,
)


def verifier(**options: object) -> ChainVerifier:
    return ChainVerifier(
        tenant_slug=TENANT,
        run_id=RUN,
        other_runs=lambda: ["run-0", OTHER_RUN],
        **options,  # type: ignore[arg-type]  # tests pass any option
    )


def batches(rows: list[EntryRow], size: int) -> list[list[EntryRow]]:
    """Batches as a reader takes them: each starts with the last row of the one before."""
    return [rows[max(0, start - 1) : start + size] for start in range(0, len(rows), size)]


def report_on(
    rows: list[EntryRow], head: HeadRow | None, size: int = 100, **options: object
) -> ChainReport:
    checking = verifier(**options)
    for batch in batches(rows, size):
        checking.feed(batch)
    return checking.finish(head)


def verdict(report: ChainReport) -> tuple[Tampering, int] | None:
    bad = report.first_bad
    return None if bad is None else (bad.tampering, bad.sequence)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_named_with_class_and_place(attack: Attack) -> None:
    for version in (1, 2):
        rows, head = attack.make(honest_rows(version))
        expected = attack.expected(version)
        for size in (1, 2, 3, 100):
            report = report_on(rows, head, size)

            case = f"version {version}, batches of {size}"
            assert verdict(report) == expected, case
            assert (report.state is State.TAMPERED) == (expected is not None), case


def test_every_attack_that_a_chain_cannot_see_says_what_does() -> None:
    for attack in ATTACKS:
        assert bool(attack.note) == (attack.verdict is None)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_honest_run_is_clean_and_says_that_nothing_of_it_is_sealed(
    version: int, size: int
) -> None:
    rows = honest_rows(version, 20)

    report = report_on(rows, head_of(rows), size)

    assert report == ChainReport(
        state=State.VERIFIED_UNSEALED_TAIL,
        run_id=RUN,
        from_sequence=0,
        to_sequence=19,
        entries=20,
        head_hash=rows[-1].entry_hash,
        unsealed=20,
        erased=0,
        linkage_only=0,
    )


def test_a_run_under_a_seal_is_verified_and_a_tail_is_counted() -> None:
    rows = honest_rows()

    assert report_on(rows, head_of(rows), sealed_to=7).state is State.VERIFIED
    tail = report_on(rows, head_of(rows), sealed_to=4)
    assert (tail.state, tail.unsealed) == (State.VERIFIED_UNSEALED_TAIL, 3)


def test_no_entries_and_no_head_is_nothing_to_verify_and_not_a_success() -> None:
    report = report_on([], None)

    assert report.state is State.NOTHING_TO_VERIFY
    assert (report.entries, report.to_sequence, report.head_hash) == (0, -1, None)


def test_every_single_byte_of_a_stored_row_matters() -> None:
    rows = honest_rows(0, 6)
    random_order = random.Random(7)
    for _ in range(150):
        place = random_order.randrange(len(rows))
        row = rows[place]
        field = random_order.choice(
            [
                "id",
                "kind",
                "scope_text",
                "actor",
                "timestamp",
                "payload_text",
                "payload_salt",
                "content_hash",
                "prev_hash",
                "entry_hash",
            ]
        )
        value = getattr(row, field)
        if value is None:
            continue
        at = random_order.randrange(len(value))
        if isinstance(value, bytes):
            spoiled = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        else:
            spoiled = value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
        changed = [*rows[:place], row._replace(**{field: spoiled}), *rows[place + 1 :]]

        bad = report_on(changed, head_of(rows)).first_bad

        assert bad is not None, (field, at)
        assert bad.sequence == place


def test_what_was_expected_and_found_is_said() -> None:
    rows = honest_rows()
    edited = [*rows[:3], rows[3]._replace(payload_text=FORGED), *rows[4:]]
    by_payload = report_on(edited, head_of(rows)).first_bad
    assert by_payload is not None
    assert rows[3].content_hash is not None
    assert by_payload.expected == tag(rows[3].content_hash)
    assert by_payload.found.startswith("sha256:")
    assert by_payload.found != by_payload.expected

    [swapped] = [attack for attack in ATTACKS if attack.name == "6 two neighbours swapped"]
    assert report_on(*swapped.make(rows)).first_bad == FirstBad(
        RUN, 3, Tampering.REORDERED, "3", "4"
    )
    assert report_on(rows[:6], head_of(rows)).first_bad == FirstBad(
        RUN, 6, Tampering.GAP, "6", "no entry"
    )
    foreign = chained(honest_rows(), OTHER_RUN)
    assert report_on(foreign, head_of(foreign)).first_bad == FirstBad(
        RUN, 0, Tampering.SCOPE, RUN, "another run"
    )


def test_a_transplant_whose_run_is_gone_still_counts_as_edited() -> None:
    rows = chained(honest_rows(), "a run that nobody knows")

    assert verdict(report_on(rows, head_of(rows))) == (Tampering.CONTENT, 0)


def test_an_entry_moved_beyond_the_window_counts_as_edited() -> None:
    far = chained([entry(REORDER_WINDOW + 1, 1, {"n": 1})])[0]

    assert verdict(report_on([far._replace(sequence=0)], None)) == (Tampering.CONTENT, 0)
    near = chained([entry(REORDER_WINDOW, 1, {"n": 1})])[0]
    assert verdict(report_on([near._replace(sequence=0)], None)) == (Tampering.REORDERED, 0)


def test_the_wire_answer_has_the_keys_of_the_contract() -> None:
    rows = honest_rows()
    clean = report_on(rows, head_of(rows)).as_wire()
    assert clean == {
        "state": "verified-unsealed-tail",
        "runId": RUN,
        "from": 0,
        "to": 7,
        "entries": 8,
        "unsealed": 8,
        "erased": 0,
        "headHash": tag(rows[-1].entry_hash),
    }
    assert "headHash" not in report_on([], None).as_wire()
    assert report_on(rows[:6], head_of(rows)).as_wire()["firstBad"] == {
        "runId": RUN,
        "sequence": 6,
        "class": "gap",
        "expected": "6",
        "found": "no entry",
    }


# Erasure


@pytest.mark.parametrize("size", [1, 3, 100])
def test_an_attested_erasure_of_version_2_stays_provable(size: int) -> None:
    rows = with_erasure(honest_rows(2), 2)

    report = report_on(rows, head_of(rows), size)

    assert (report.state, report.erased, report.linkage_only) == (State.ERASED_ATTESTED, 1, 0)


def test_an_attested_erasure_of_version_1_leaves_linkage_only() -> None:
    rows = with_erasure(honest_rows(1), 2)

    report = report_on(rows, head_of(rows))

    assert (report.state, report.erased, report.linkage_only) == (State.LINKAGE_ONLY, 1, 1)


def test_a_leaf_attests_an_erasure_without_the_entry_of_the_run() -> None:
    rows = with_erasure(honest_rows(2), 2, attested=False)

    report = report_on(rows, head_of(rows), attested_ids={"le-2"})

    assert report.state is State.ERASED_ATTESTED


def test_once_the_attesting_entry_is_sealed_only_the_leaf_counts() -> None:
    rows = with_erasure(honest_rows(2), 2)

    without_leaf = report_on(rows, head_of(rows), sealed_to=8)
    assert verdict(without_leaf) == (Tampering.CONTENT, 2)
    with_leaf = report_on(rows, head_of(rows), sealed_to=8, attested_ids={"le-2"})
    assert with_leaf.state is State.ERASED_ATTESTED
    not_yet_sealed = report_on(rows, head_of(rows), sealed_to=7)
    assert not_yet_sealed.state is State.ERASED_ATTESTED


def test_an_earlier_erasure_without_a_word_is_named_before_a_later_edit() -> None:
    rows = with_erasure(honest_rows(2), 2, attested=False)
    rows[6] = rows[6]._replace(payload_text=FORGED)

    assert verdict(report_on(rows, head_of(rows))) == (Tampering.CONTENT, 2)
    attested = with_erasure(honest_rows(2), 2)
    attested[6] = attested[6]._replace(payload_text=FORGED)
    assert verdict(report_on(attested, head_of(attested), size=2)) == (Tampering.CONTENT, 6)


def test_a_payload_that_quotes_an_attestation_attests_nothing() -> None:
    quoting = [
        {"logEntryId": "le-2", "note": '","type":"payload.erased"}'},
        {"logEntryId": "le-2", "z": {"type": "payload.erased"}},
        {"a": 1, "logEntryId": "le-2", "type": "payload.erased"},
        {"logEntryId": "le-22", "type": "payload.erased"},
        {"logEntryId": "le-2", "type": "payload.kept"},
    ]
    for payload in quoting:
        rows = honest_rows(2)
        word = entry(8, 2, payload, kind="event-emitted", caused_by=None)
        rows = chained([*rows, word], start=8)
        rows[2] = rows[2]._replace(payload_text=None, payload_salt=None, is_erased=True)
        assert verdict(report_on(rows, head_of(rows))) == (Tampering.CONTENT, 2)


def test_an_attestation_of_another_kind_of_entry_attests_nothing() -> None:
    rows = with_erasure(honest_rows(2), 2)
    word = rows[8]._replace(kind="tool-result")
    rows = [*rows[:8], *chained([*rows[:8], word], start=8)[8:]]

    assert verdict(report_on(rows, head_of(rows))) == (Tampering.CONTENT, 2)


# Ranges, batches, resuming


@pytest.mark.parametrize(("first", "last"), [(0, 4), (3, 6), (3, 7), (7, 7), (1, None)])
def test_a_clean_range_is_not_complete(first: int, last: int | None) -> None:
    rows = honest_rows()
    end = 7 if last is None else last
    asked = rows[max(0, first - 1) : end + 1]

    report = report_on(asked, head_of(rows), first=first, last=last)

    assert report.state is State.NOT_COMPLETE
    assert (report.from_sequence, report.to_sequence) == (first, end)
    assert report.entries == end - first + 1


def test_a_range_that_is_the_whole_run_is_complete() -> None:
    rows = honest_rows()

    report = report_on(rows, head_of(rows), first=0, last=7)

    assert report.state is State.VERIFIED_UNSEALED_TAIL
    longer = report_on(rows, head_of(rows), first=0, last=99)
    assert verdict(longer) is None


def test_a_range_judges_its_own_entries_only() -> None:
    rows = honest_rows()
    rows[1] = rows[1]._replace(payload_text=FORGED)
    rows[6] = rows[6]._replace(payload_text=FORGED)

    assert verdict(report_on(rows[2:6], head_of(rows), first=3, last=5)) is None
    assert verdict(report_on(rows[2:7], head_of(rows), first=3, last=6)) == (Tampering.CONTENT, 6)


def test_a_range_without_the_entry_before_it_shows_a_gap_there() -> None:
    rows = honest_rows()

    assert verdict(report_on(rows[3:], head_of(rows), first=3)) == (Tampering.GAP, 2)
    assert verdict(report_on([], head_of(rows), first=3)) == (Tampering.GAP, 2)


def test_a_range_that_ends_early_shows_a_gap_when_the_head_says_there_is_more() -> None:
    rows = honest_rows()

    assert verdict(report_on(rows[2:5], head_of(rows), first=3, last=6)) == (Tampering.GAP, 5)


def test_a_range_beyond_the_end_of_the_run_is_nothing_to_verify() -> None:
    rows = honest_rows()

    assert report_on([], head_of(rows), first=20).state is State.NOTHING_TO_VERIFY


def test_an_erasure_is_attested_from_beyond_a_range() -> None:
    rows = with_erasure(honest_rows(2), 2)
    checking = verifier(first=0, last=4)
    checking.feed(rows[:5])
    assert checking.unattested == {"le-2"}

    checking.attest_later(rows[5:])

    assert checking.unattested == frozenset()
    assert checking.finish(head_of(rows)).state is State.NOT_COMPLETE


def test_a_verification_goes_on_in_another_process_where_it_stopped() -> None:
    rows = with_erasure(honest_rows(2, 30), 2)
    whole = report_on(rows, head_of(rows))
    for cut in range(1, len(rows)):
        begun = verifier()
        begun.feed(rows[:cut])
        resumed = verifier(resume=begun.progress)
        resumed.feed(rows[cut - 1 :])
        assert resumed.finish(head_of(rows)) == whole


def test_a_verification_starts_from_a_sealed_head() -> None:
    rows = honest_rows()
    sealed = Progress(4, rows[4].entry_hash)

    after = verifier(resume=sealed, sealed_to=4)
    after.feed(rows[4:])
    report = after.finish(head_of(rows))
    assert (report.state, report.entries) == (State.VERIFIED_UNSEALED_TAIL, 3)

    forged = chained([*rows[:3], rows[3]._replace(payload_text=FORGED), *rows[4:]], start=3)
    against_seal = verifier(resume=sealed)
    against_seal.feed(forged[4:])
    assert verdict(against_seal.finish(head_of(forged))) == (Tampering.CONTENT, 4)


def test_a_change_between_two_batches_is_seen_by_the_overlap() -> None:
    rows = honest_rows()
    cases = {
        Tampering.CONTENT: [rows[3]._replace(entry_hash=bytes(32)), *rows[4:]],
        Tampering.GAP: rows[4:],
        Tampering.DUPLICATE: [rows[3], rows[3]._replace(id="twin"), *rows[4:]],
    }
    for tampering, second in cases.items():
        checking = verifier()
        checking.feed(rows[:4])
        checking.feed(second)
        assert verdict(checking.finish(head_of(rows))) == (tampering, 3)


def test_reading_may_stop_once_more_rows_can_change_nothing() -> None:
    rows = honest_rows()
    rows[3] = rows[3]._replace(payload_text=FORGED)
    checking = verifier()
    checking.feed(rows[:4])
    assert not checking.is_decided  # a second row at sequence 3 would make it a duplicate
    checking.feed(rows[3:6])
    assert checking.is_decided

    waiting = verifier()
    waiting.feed([*with_erasure(rows, 2, attested=False)])
    assert not waiting.is_decided


def test_rows_out_of_order_are_a_fault_of_the_reader() -> None:
    rows = honest_rows()

    with pytest.raises(ValueError, match="not in order"):
        verifier().feed([rows[0], rows[1], rows[0]])


def test_random_runs_are_clean_and_one_random_edit_is_found() -> None:
    random_order = random.Random(11)
    for _ in range(60):
        count = random_order.randrange(1, 12)
        rows = honest_rows(random_order.choice([0, 1, 2]), count)
        size = random_order.randrange(1, 6)
        assert report_on(rows, head_of(rows), size).first_bad is None
        place = random_order.randrange(count)
        edited = [*rows]
        edited[place] = rows[place]._replace(kind="retrieval")
        bad = report_on(edited, head_of(rows), size).first_bad
        assert bad is not None
        assert bad.sequence == place


def test_the_first_entry_follows_the_zero_hash() -> None:
    rows = honest_rows()
    assert rows[0].prev_hash == ZERO_HASH
