"""What the server says inside a run, held against its record of governance: a forged word is neither sealed nor believed."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory.canonical import canonical
from memory.integrity.rows import EntryRow, erasure_payload
from memory.integrity.states import State, Tampering
from tests.builders import TenantKit
from tests.integrity.hands import Hands
from tests.integrity.logs import attacker, fill, leaves, seal, verified_twice, writer
from tests.integrity.test_bundle import checked, exported
from tests.integrity.test_closed_runs import close, closings
from tests.integrity.test_erasure import erase
from tests.integrity.test_forged_leaves import acts_of
from tests.integrity.test_receipts import judged

RUN = "run-1"


def forge_word(
    session: psycopg.Connection[Any], tenant: TenantKit, text: str, *, cause: str | None
) -> None:
    """An entry as the server writes it, appended with every hash right and the head row moved, by the table's owner."""
    hands = Hands(session, tenant, keeps_constraints=True)
    rows = hands.rows(RUN)
    last = rows[-1]
    word = EntryRow(
        sequence=len(rows),
        id=f"forged-{len(rows)}",
        kind="event-emitted",
        scope_text=last.scope_text,
        actor="user:admin",
        timestamp=last.timestamp,
        payload_text=text,
        payload_salt=None,
        content_hash=None,
        prev_hash=last.entry_hash,
        entry_hash=b"",
        hash_version=1,
        caused_by=cause,
        is_erased=False,
    )
    *_, made = hands.rehashed(RUN, [*rows, word], len(rows))
    hands.do(
        "INSERT INTO log_entry (tenant_id, run_id, sequence, id, kind, scope_text, actor, recorded_at, payload_text,"
        " payload_salt, content_hash, prev_hash, entry_hash, hash_version, caused_by, writer, writer_role)"
        " SELECT %(t)s, %(r)s, %(n)s, %(i)s, 'event-emitted', %(sc)s, %(a)s, %(at)s, %(p)s, NULL, %(c)s, %(ph)s, %(eh)s, 1,"
        " %(cause)s, 'service:x', 'agent'",
        r=RUN,
        n=made.sequence,
        i=made.id,
        sc=made.scope_text,
        a=made.actor,
        at=made.timestamp,
        p=made.payload_text,
        c=made.content_hash,
        ph=made.prev_hash,
        eh=made.entry_hash,
        cause=cause,
    )
    hands.do(
        "UPDATE run_head SET next_sequence = %(n)s, entry_count = %(n)s, head_hash = %(h)s, prev_hash = %(p)s, last_at = %(at)s"
        " WHERE tenant_id = %(t)s AND run_id = %(r)s",
        r=RUN,
        n=len(rows) + 1,
        h=made.entry_hash,
        p=made.prev_hash,
        at=made.timestamp,
    )


def wipe(session: psycopg.Connection[Any], tenant: TenantKit, entry_id: str) -> None:
    session.execute(
        "UPDATE log_entry SET payload_text = NULL, payload_salt = NULL, payload_erased_at = now()"
        " WHERE tenant_id = %s AND id = %s",
        [tenant.id, entry_id],
    )


@pytest.mark.parametrize("version", [1, 2])
def test_a_payload_wiped_under_a_forged_word_is_tampering_and_never_sealed(
    version: int, live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    stored = fill(live_acme, 5, by=writer(live_acme, hash_version=version))
    seal(live_acme)
    with attacker(superuser_url) as session:
        wipe(session, live_acme, stored[3].id)
        word = canonical(erasure_payload(stored[3].id, "subject-request"))
        forge_word(session, live_acme, word, cause=stored[3].id)

    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.sequence, bad.tampering) == (3, Tampering.CONTENT)
    assert "no act" in bad.found
    [refused] = seal(live_acme).refused
    assert (refused.run_id, refused.sequence, refused.tampering) == (RUN, 5, Tampering.CONTENT)
    seal(live_acme)
    assert [one["runId"] for one in acts_of(live_acme, "seal.refused")] == [RUN]
    assert "erasure" not in {leaf["type"] for leaf in leaves(live_acme)}
    assert verified_twice(live_acme).first_bad == bad
    code, told = checked(exported(live_acme, tmp_path))
    assert (code, told["firstBad"]["class"], told["firstBad"]["place"]) == (10, "content", 3)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"whatever one likes","type":"payload.erased"}',
        'not json at all,"type":"payload.erased"}',
        '{"logEntryId":"ENTRY","note":"more","reasonCode":"r","type":"payload.erased"}',
        '{"logEntryId":"ENTRY","reasonCode":"r","type":"payload.erased"}',
    ],
)
def test_a_closed_run_does_not_go_on_with_a_forged_word(
    text: str, live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    stored = fill(live_acme, 4, by=writer(live_acme, hash_version=2))
    close(live_acme)
    seal(live_acme)
    erase(live_acme, stored[1])
    seal(live_acme)
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED
    with attacker(superuser_url) as session:
        forge_word(session, live_acme, text.replace("ENTRY", stored[1].id), cause=stored[1].id)
        session.execute(
            "UPDATE run_head SET closed_at = closed_at WHERE tenant_id = %s", [live_acme.id]
        )

    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.sequence, bad.tampering) == (5, Tampering.SEAL)
    [refused] = seal(live_acme).refused
    assert (refused.run_id, refused.sequence) == (RUN, 5)
    assert len(closings(live_acme)) == 1
    assert judged(live_acme)[0] == 10
    code, told = checked(exported(live_acme, tmp_path))
    assert (code, told["firstBad"]["place"]) == (10, 5)


def test_a_forged_word_in_a_range_is_named_there_and_nowhere_else(
    live_acme: TenantKit, superuser_url: str
) -> None:
    stored = fill(live_acme, 6, by=writer(live_acme, hash_version=2))
    seal(live_acme)
    with attacker(superuser_url) as session:
        wipe(session, live_acme, stored[1].id)
        word = canonical(erasure_payload(stored[1].id, "r"))
        forge_word(session, live_acme, word, cause=stored[1].id)
    for range, place in (((0, 3), 1), ((1, 1), 1), ((4, 6), 6)):
        first, last = range
        bad = verified_twice(live_acme, first=first, last=last).first_bad
        assert bad is not None, range
        assert bad.sequence == place
    assert verified_twice(live_acme, first=2, last=4).state is State.NOT_COMPLETE


def test_the_moment_of_an_erasure_is_the_one_of_its_word(
    live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    stored = fill(live_acme, 5, by=writer(live_acme, hash_version=2))
    erase(live_acme, stored[2])
    seal(live_acme)
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED
    for moment in ("now() - interval '1 year'", "'infinity'", "now() + interval '5 minutes'"):
        with attacker(superuser_url) as session:
            session.execute(
                f"UPDATE log_entry SET payload_erased_at = {moment} WHERE tenant_id = %s AND id = %s",
                [live_acme.id, stored[2].id],
            )
        bad = verified_twice(live_acme).first_bad
        assert bad is not None, moment
        assert (bad.sequence, bad.tampering) == (2, Tampering.CONTENT)
        code, told = checked(exported(live_acme, tmp_path))
        assert (code, told["firstBad"]["place"]) == (10, 2)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("first_at = first_at - interval '1 ms'", 0),
        ("last_at = last_at + interval '1 ms'", 4),
        ("closed_at = now()", 4),
    ],
)
def test_what_a_head_row_says_besides_its_hashes_is_held_against_entries_and_acts(
    change: str, place: int, live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 5)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            f"UPDATE run_head SET {change} WHERE tenant_id = %s AND run_id = %s",
            [live_acme.id, RUN],
        )
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.sequence, bad.tampering) == (place, Tampering.LINK)
    assert closings(live_acme) == []
    seal(live_acme)
    assert closings(live_acme) == [], "an end that nobody asked for is not sealed"


@pytest.mark.parametrize("change", ["NULL", "closed_at - interval '1 day'"])
def test_a_closed_run_that_was_opened_again_by_its_head_row_is_named(
    change: str, live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 5)
    close(live_acme)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    with attacker(superuser_url) as session:
        session.execute(
            f"UPDATE run_head SET closed_at = {change} WHERE tenant_id = %s AND run_id = %s",
            [live_acme.id, RUN],
        )
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.sequence, bad.tampering) == (4, Tampering.LINK)


def test_words_after_the_closing_and_before_its_seal_are_no_forgery(live_acme: TenantKit) -> None:
    stored = fill(live_acme, 4, by=writer(live_acme, hash_version=2))
    close(live_acme)
    erase(live_acme, stored[0], stored[1])
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED
    seal(live_acme)
    assert len(closings(live_acme)) == 1
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED


def test_an_erasure_of_many_entries_is_named_whole_by_its_acts(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    stored = fill(live_acme, 230, by=writer(live_acme, hash_version=2))
    erase(live_acme, *stored)
    acts = acts_of(live_acme, "log.payloads-erased")
    assert [act["entries"] for act in acts] == [100, 100, 29]
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED
    seal(live_acme)
    assert verified_twice(live_acme).state is State.ERASED_ATTESTED
    assert checked(exported(live_acme, tmp_path))[0] == 13
