"""The two verifiers give one answer, on honest runs, on every attack and on hostile strings.

The attacks need rows that the real tables refuse, so they run on temporary tables of the same shape,
which stand before the real ones; honest runs are also read from the real tables, as the app's role.
"""

import random
from collections.abc import Iterator
from hashlib import sha256
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from memory.actions.append_log_entries import append_log_entries
from memory.canonical import canonical_string
from memory.integrity.chain import ChainVerifier
from memory.integrity.chain_sql import CLEAN_SUMMARY, FIRST_BAD, SUMMARY, verify_run_in_sql
from memory.integrity.rows import EntryRow, HeadRow, Progress
from memory.integrity.states import ChainReport, State, Tampering
from memory.integrity.stored_run import read_batch, verify_stored_run
from memory.log_entry import NewEntry
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.attacks import (
    ATTACKS,
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

TENANT_ID = UUID("0192f000-0000-7000-8000-000000000001")
CREATE = """
CREATE TEMP TABLE log_entry (
  tenant_id uuid, run_id text, sequence bigint, id text, kind text, scope_text text, actor text,
  recorded_at timestamptz, payload_text text, payload_salt text, content_hash bytea,
  prev_hash bytea, entry_hash bytea, hash_version smallint, caused_by text,
  payload_erased_at timestamptz);
CREATE TEMP TABLE run_head (
  tenant_id uuid, run_id text, next_sequence bigint, head_hash bytea, entry_count bigint, prev_hash bytea);
"""


@pytest.fixture(scope="module")
def session(superuser_url: str) -> Iterator[psycopg.Connection]:
    """One session for all, so that its statements are planned once."""
    with psycopg.connect(superuser_url, prepare_threshold=1) as opened:
        opened.execute(CREATE)
        yield opened
        opened.rollback()


@pytest.fixture
def cursor(session: psycopg.Connection) -> Iterator[psycopg.Cursor]:
    with session.cursor() as opened:
        opened.execute("SAVEPOINT test")
        yield opened
        opened.execute("ROLLBACK TO SAVEPOINT test")


def store(cursor: psycopg.Cursor, rows: list[EntryRow], head: HeadRow | None) -> None:
    cursor.execute("DELETE FROM log_entry")
    cursor.execute("DELETE FROM run_head")
    cursor.executemany(
        "INSERT INTO log_entry VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
        " CASE WHEN %s THEN now() END)",
        [(TENANT_ID, RUN, *row) for row in rows],
    )
    for run_id, stored in {OTHER_RUN: HeadRow(1, bytes(32), 1, bytes(32)), RUN: head}.items():
        if stored is not None:
            cursor.execute(
                "INSERT INTO run_head VALUES (%s, %s, %s, %s, %s, %s)", (TENANT_ID, run_id, *stored)
            )


def in_sql(cursor: psycopg.Cursor, **options: object) -> ChainReport:
    return verify_run_in_sql(
        cursor,
        tenant_id=TENANT_ID,
        tenant_slug=TENANT,
        run_id=RUN,
        **options,  # type: ignore[arg-type]  # tests pass any option
    )


def in_python(cursor: psycopg.Cursor, **options: object) -> ChainReport:
    options.setdefault("batch_entries", 3)
    return verify_stored_run(
        cursor,
        tenant_id=TENANT_ID,
        tenant_slug=TENANT,
        run_id=RUN,
        **options,  # type: ignore[arg-type]  # tests pass any option
    )


def in_memory(rows: list[EntryRow], head: HeadRow | None) -> ChainReport:
    verifier = ChainVerifier(tenant_slug=TENANT, run_id=RUN, other_runs=lambda: [OTHER_RUN])
    verifier.feed(rows)
    return verifier.finish(head)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_both_verifiers_name_an_attack_alike(attack: Attack, cursor: psycopg.Cursor) -> None:
    for version in (1, 2):
        rows, head = attack.make(honest_rows(version))
        store(cursor, rows, head)

        by_sql, by_python, by_rows = in_sql(cursor), in_python(cursor), in_memory(rows, head)
        for span_entries in (1, 3):
            assert in_sql(cursor, span_entries=span_entries).first_bad == by_sql.first_bad

        bad = by_sql.first_bad
        found = None if bad is None else (bad.tampering, bad.sequence)
        assert found == attack.expected(version), f"version {version}"
        assert bad == by_rows.first_bad == by_python.first_bad
        assert by_sql.state is by_python.state
        if bad is None:
            assert by_sql == by_rows == by_python


@pytest.mark.parametrize("version", [0, 1, 2])
def test_both_verifiers_find_an_honest_run_clean(version: int, cursor: psycopg.Cursor) -> None:
    rows = honest_rows(version, 20)
    store(cursor, rows, head_of(rows))

    assert in_sql(cursor) == in_python(cursor) == in_memory(rows, head_of(rows))
    for span_entries in (1, 3, 19, 20, 21):
        assert in_sql(cursor, span_entries=span_entries) == in_sql(cursor)
    assert in_sql(cursor).state is State.VERIFIED_UNSEALED_TAIL
    assert in_sql(cursor, sealed_to=19).state is State.VERIFIED


@pytest.mark.parametrize("version", [1, 2])
def test_both_verifiers_judge_erasures_alike(version: int, cursor: psycopg.Cursor) -> None:
    rows = with_erasure(honest_rows(version), 2)
    store(cursor, rows, head_of(rows))
    for options in (
        {},
        {"sealed_to": 7},
        {"sealed_to": 8},
        {"sealed_to": 8, "attested_ids": ["le-2"]},
        {"last": 5},
        {"first": 1, "last": 2},
    ):
        assert in_sql(cursor, **options) == in_python(cursor, **options), options

    store(cursor, with_erasure(honest_rows(version), 2, attested=False), head_of(rows[:8]))
    for options in ({}, {"attested_ids": ["le-2"]}, {"last": 5}):
        assert in_sql(cursor, **options).first_bad == in_python(cursor, **options).first_bad


def test_both_verifiers_judge_every_range_alike(cursor: psycopg.Cursor) -> None:
    clean = honest_rows(0, 6)
    edited = [*clean[:3], clean[3]._replace(kind="retrieval"), *clean[4:]]
    gapped = [row for row in clean if row.sequence not in (2, 5)]
    for rows in (clean, edited, gapped):
        store(cursor, rows, head_of(clean))
        for first in range(9):
            for last in (None, *range(first, 9)):
                options = {"first": first, "last": last}
                by_sql = in_sql(cursor, span_entries=1 + first % 3, **options)
                by_python = in_python(cursor, **options)
                assert by_sql.first_bad == by_python.first_bad, options
                assert by_sql.state is by_python.state, options
                if by_sql.first_bad is None:
                    assert by_sql == by_python, options


def test_random_damage_is_judged_alike(cursor: psycopg.Cursor) -> None:
    random_order = random.Random(3)
    fields = [
        "sequence",
        "id",
        "kind",
        "scope_text",
        "actor",
        "payload_text",
        "payload_salt",
        "content_hash",
        "prev_hash",
        "entry_hash",
        "hash_version",
        "caused_by",
        "is_erased",
    ]
    for _ in range(120):
        rows = honest_rows(random_order.choice([0, 1, 2]), random_order.randrange(1, 7))
        head = head_of(rows)
        for _ in range(random_order.randrange(1, 4)):
            place, other = (random_order.randrange(len(rows)) for _ in range(2))
            action = random_order.choice(["field", "field", "field", "delete", "copy", "rehash"])
            if action == "field":
                field = random_order.choice(fields)
                changed = rows[place]._replace(**{field: getattr(rows[other], field)})
                if field == "is_erased":
                    changed = changed._replace(is_erased=True)
                rows[place] = changed
            elif action == "copy":
                rows.append(rows[place])
            elif action == "rehash":
                rows = chained(rows, start=place)
            elif len(rows) > 1:
                del rows[place]
            rows.sort(key=lambda row: row.sequence)
        store(cursor, rows, head)

        by_sql = in_sql(cursor, span_entries=random_order.choice([1, 2, 99]))
        assert by_sql.first_bad == in_python(cursor, batch_entries=99).first_bad, rows


HOSTILE = [
    "\x01\x08\t\n\x0b\x0c\r\x1f",
    "\x7f\x80\x9f\xa0\xad",
    '"\\/\b</script>',
    "\u2028\u2029\u200b\u202e\ufeff\ufffd\uffff",
    "\ud7ff\ue000\U00010000\U0001f600\U0010ffff",
    "e\u0301\u00e9",
    "\\u0041 %s %% {} ' $1",
    "",
]


def test_postgresql_writes_strings_as_rfc_8785_does(cursor: psycopg.Cursor) -> None:
    random_order = random.Random(5)
    every_low_character = [chr(code) for code in range(1, 0x250)]
    drawn = [
        "".join(
            chr(code)
            for code in (random_order.randrange(1, 0x11_0000) for _ in range(12))
            if not 0xD800 <= code < 0xE000
        )
        for _ in range(3_000)
    ]
    texts = [*HOSTILE, *every_low_character, *drawn]

    cursor.execute("SELECT to_json(t)::text FROM unnest(%s::text[]) AS t", [texts])

    assert [row[0] for row in cursor.fetchall()] == [canonical_string(text) for text in texts]


def test_hostile_strings_everywhere_verify_in_both(cursor: psycopg.Cursor) -> None:
    rows = chained(
        [
            entry(
                n,
                1 + n % 2,
                {hostile: [hostile, {"x": hostile}]},
                id=f"{n}{hostile}",
                kind=hostile,
                actor=hostile,
                caused_by=hostile,
            )
            for n, hostile in enumerate(HOSTILE)
        ]
    )
    store(cursor, rows, head_of(rows))

    assert in_sql(cursor) == in_python(cursor) == in_memory(rows, head_of(rows))
    assert in_sql(cursor).first_bad is None


class Counting:
    """A cursor that says which statements it was given."""

    def __init__(self, cursor: psycopg.Cursor) -> None:
        self._cursor = cursor
        self.fetchone, self.fetchall = cursor.fetchone, cursor.fetchall
        self.asked: list[str] = []

    def execute(self, query: str, parameters: object = None) -> None:
        names = {CLEAN_SUMMARY: "clean", SUMMARY: "summary", FIRST_BAD: "first bad"}
        self.asked.append(names.get(query, "other"))
        self._cursor.execute(query, parameters)  # type: ignore[arg-type]  # a test's own text


@pytest.mark.parametrize("version", [1, 2])
def test_an_honest_run_is_one_statement_a_span(version: int, cursor: psycopg.Cursor) -> None:
    rows = honest_rows(version, 20)
    store(cursor, rows, head_of(rows))
    for span_entries, spans in ((1, 20), (3, 7), (10, 2), (20, 1), (21, 1)):
        counting = Counting(cursor)
        report = in_sql(counting, span_entries=span_entries)  # type: ignore[arg-type]  # as a cursor
        assert report == in_python(cursor)
        assert counting.asked == ["clean"] * spans
    counting = Counting(cursor)
    assert in_sql(counting, first=4, last=9).first_bad is None  # type: ignore[arg-type]  # as a cursor
    assert counting.asked == ["clean"]


def test_what_can_not_be_told_at_once_is_looked_at_entry_by_entry(cursor: psycopg.Cursor) -> None:
    rows = honest_rows(1, 8)
    for changed in (
        chained([*rows[:3], rows[3]._replace(id='quoted "id"'), *rows[4:]]),
        chained([*rows[:3], rows[3]._replace(actor="a\ttab"), *rows[4:]]),
        with_erasure(rows, 2),
        honest_rows(0, 8),
    ):
        store(cursor, changed, head_of(changed))
        counting = Counting(cursor)
        report = in_sql(counting)  # type: ignore[arg-type]  # as a cursor
        assert (report.first_bad, report) == (None, in_python(cursor))
        assert counting.asked == ["clean", "summary"]


def test_a_run_of_odd_strings_is_not_asked_twice_for_long(cursor: psycopg.Cursor) -> None:
    rows = chained([entry(n, 1, n, id=f'"{n}"') for n in range(10)])
    store(cursor, rows, head_of(rows))
    counting = Counting(cursor)
    report = in_sql(counting, span_entries=2)  # type: ignore[arg-type]  # as a cursor
    assert report == in_python(cursor)
    assert counting.asked == ["clean", "summary"] * 2 + ["summary"] * 4, "the last span is empty"


def test_strings_that_move_into_their_neighbours_are_found(cursor: psycopg.Cursor) -> None:
    """Written plainly, these rows give the text that was hashed; their strings are not what they were."""
    honest = honest_rows(1, 6)
    told = 'a","id":"b","kind":"c'
    for field, text, others in (
        ("id", f'le-3","kind":"tool-result","payload":{honest[3].payload_text}', ("kind",)),
        ("actor", f'tool:crm","id":"{honest[4].id}', ("id",)),
        ("actor", told, ("id", "kind")),
    ):
        for place in (3, 4):
            moved = honest[place]._replace(**{field: text})
            for other in others:
                moved = moved._replace(**{other: ""})
            rows = [*honest[:place], moved, *honest[place + 1 :]]
            store(cursor, rows, head_of(honest))
            bad = in_sql(cursor).first_bad
            assert bad == in_python(cursor).first_bad
            assert bad is not None
            assert (bad.tampering, bad.sequence) == (Tampering.CONTENT, place)
    # The one that would fit to the letter: an entry without payload whose kind took the place of id and kind.
    plain = chained([entry(0, 1, None, id='x","kind":"y', kind="z", actor=None)])
    store(cursor, plain, head_of(plain))
    assert in_sql(cursor).first_bad is None
    twin = plain[0]._replace(id="x", kind='y","kind":"z')
    store(cursor, [twin], head_of(plain))
    bad = in_sql(cursor).first_bad
    assert bad == in_python(cursor).first_bad
    assert bad is not None
    plainly = '{"id":"x","kind":"y","kind":"z","prevHash":"sha256:' + "0" * 64
    text = f'{plainly}","runId":"{RUN}","scope":{twin.scope_text},"sequence":0,"timestamp":"{twin.timestamp}"}}'
    fitting = twin._replace(entry_hash=sha256(text.encode()).digest())
    store(cursor, [fitting], head_of([fitting]))
    bad = in_sql(cursor).first_bad
    assert bad == in_python(cursor).first_bad
    assert bad is not None
    assert (bad.tampering, bad.sequence) == (Tampering.CONTENT, 0)


def test_an_entry_past_the_head_is_found_also_where_a_span_ends(cursor: psycopg.Cursor) -> None:
    rows = honest_rows(1, 9)
    head = head_of(rows[:8])
    store(cursor, rows, head)
    for span_entries in (1, 2, 4, 8, 9):
        bad = in_sql(cursor, span_entries=span_entries).first_bad
        assert bad == in_python(cursor).first_bad
        assert bad is not None
        assert (bad.tampering, bad.sequence) == (Tampering.LINK, 8)


def test_sequences_that_only_add_up_are_not_a_run(cursor: psycopg.Cursor) -> None:
    """Twice the first and twice the last: as many, from 0 to 3, of the same sum."""
    rows = honest_rows(1, 4)
    crowded = [rows[0], rows[0], rows[3], rows[3]]
    store(cursor, crowded, head_of(rows))
    bad = in_sql(cursor).first_bad
    assert bad == in_python(cursor).first_bad
    assert bad is not None
    assert (bad.tampering, bad.sequence) == (Tampering.DUPLICATE, 0)


def test_many_rows_at_one_sequence_do_not_hold_the_reader_up(cursor: psycopg.Cursor) -> None:
    rows = honest_rows()
    crowded = [*rows[:3], *[rows[3]] * 20, *rows[4:]]
    store(cursor, crowded, head_of(rows))

    bad = in_python(cursor, batch_entries=2).first_bad
    assert bad is not None
    assert (bad.tampering, bad.sequence) == (Tampering.DUPLICATE, 3)
    assert bad == in_sql(cursor).first_bad


def test_a_stored_verification_reports_progress_and_resumes(cursor: psycopg.Cursor) -> None:
    rows = honest_rows(0, 10)
    store(cursor, rows, head_of(rows))
    heard: list[Progress] = []

    whole = in_python(cursor, batch_entries=4, on_batch=heard.append)

    assert [progress.sequence for progress in heard] == [4, 8, 9]
    for progress in heard:
        assert in_python(cursor, resume=progress) == whole


def test_a_batch_and_the_head_come_from_one_statement(cursor: psycopg.Cursor) -> None:
    rows = honest_rows()
    store(cursor, rows, head_of(rows))

    read, head = read_batch(cursor, tenant_id=TENANT_ID, run_id=RUN, from_sequence=2, limit=3)
    assert (read, head) == (rows[2:5], head_of(rows))
    assert read_batch(cursor, tenant_id=TENANT_ID, run_id="none", from_sequence=0, limit=3) == (
        [],
        None,
    )


def appended(tenant: TenantKit, count: int) -> None:
    principal = tenant.principal("agent", projects=["p1"])
    scope = {"tenantId": tenant.slug, "projectId": "p1"}
    with tenant_context(tenant.id):
        for n in range(count):
            new = NewEntry(
                kind="tool-call", scope=scope, id=f"a{n}", payload={"n": n, "hostile": HOSTILE}
            )
            append_log_entries(principal=principal, run_id=RUN, entries=[new])
        append_log_entries(
            principal=principal,
            run_id=RUN,
            entries=[
                NewEntry(kind="tool-result", scope=scope, id=f"b{n}", payload=n, caused_by="a0")
                for n in range(count)
            ],
        )


def test_what_the_append_stored_verifies_in_both_as_the_app_role(acme: TenantKit) -> None:
    appended(acme, 5)
    key = {"tenant_id": acme.id, "tenant_slug": acme.slug, "run_id": RUN}
    with tenant_context(acme.id), connection.cursor() as cursor:
        by_sql = verify_run_in_sql(cursor, **key)
        by_python = verify_stored_run(cursor, batch_entries=3, **key)

    assert by_sql == by_python
    assert (by_sql.state, by_sql.entries) == (State.VERIFIED_UNSEALED_TAIL, 10)


def test_another_tenants_run_is_nothing_to_verify(acme: TenantKit) -> None:
    appended(acme, 2)
    other = UUID("0192f000-0000-7000-8000-00000000000f")
    with tenant_context(acme.id), connection.cursor() as cursor:
        report = verify_run_in_sql(cursor, tenant_id=other, tenant_slug="globex", run_id=RUN)

    assert report.state is State.NOTHING_TO_VERIFY


def test_an_edit_past_every_trigger_is_found_in_the_real_table(
    live_acme: TenantKit, superuser_url: str
) -> None:
    appended(live_acme, 3)
    with psycopg.connect(superuser_url) as attacker:
        attacker.execute("SET LOCAL session_replication_role = replica")
        attacker.execute(
            "UPDATE log_entry SET actor = 'user:eve' WHERE tenant_id = %s AND sequence = 4",
            [live_acme.id],
        )

    key = {"tenant_id": live_acme.id, "tenant_slug": live_acme.slug, "run_id": RUN}
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        by_sql = verify_run_in_sql(cursor, **key)
        by_python = verify_stored_run(cursor, **key)

    assert by_sql.first_bad == by_python.first_bad
    assert by_sql.first_bad is not None
    assert (by_sql.first_bad.tampering, by_sql.first_bad.sequence) == (Tampering.CONTENT, 4)
