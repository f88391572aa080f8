"""Rows that only the owner of the tables can make: columns emptied, times that can't be written, leaves that are no JSON.

Each is tampering with a place, for both verifiers, the API, the worker and the sealer; none is a crash.
"""

import psycopg
import pytest

from memory.access import system_principal
from memory.actions.rotate_signing_key import rotate_signing_key
from memory.actions.run_verifications import run_verifications
from memory.actions.verify_tenant import verify_tenant
from memory.integrity.states import State, Tampering
from tests.builders import ApiClient, TenantKit
from tests.integrity.hands import hands_on
from tests.integrity.logs import attacker, fill, seal, verified_twice
from tests.pages.people import person

PAST_THE_END = "'294276-12-31 23:59:59.999999+00'"
EMPTIED = {
    "id": "id",
    "kind": "kind",
    "prev_hash": "prevHash",
    "entry_hash": "entryHash",
    "scope_text": "scope",
    "hash_version": "hashVersion",
}


@pytest.fixture
def auditor(live_acme: TenantKit) -> ApiClient:
    return live_acme.client("auditor")


def move_time(superuser_url: str, tenant: TenantKit, run: str, time: str) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            f"UPDATE log_entry SET recorded_at = {time} WHERE tenant_id = %s AND run_id = %s AND sequence = 4",
            [tenant.id, run],
        )


@pytest.fixture
def no_time(live_acme: TenantKit, superuser_url: str) -> TenantKit:
    """A tenant with a sealed run, and one that is not sealed and has an entry of a time past the last one there is."""
    fill(live_acme, 8, "run-a")
    seal(live_acme)
    fill(live_acme, 8, "run-b")
    fill(live_acme, 8, "run-c")
    move_time(superuser_url, live_acme, "run-b", PAST_THE_END)
    return live_acme


@pytest.mark.parametrize(
    "time", [PAST_THE_END, "'infinity'", "'-infinity'", "'12026-01-01'", "'0044-03-15 BC'"]
)
def test_a_time_that_can_not_be_written_is_tampering_at_its_place(
    live_acme: TenantKit, superuser_url: str, time: str
) -> None:
    fill(live_acme)
    seal(live_acme)
    move_time(superuser_url, live_acme, "run-1", time)
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.tampering, bad.sequence, bad.found) == (Tampering.CONTENT, 4, "no timestamp")


def test_the_same_moment_before_our_era_is_not_the_same(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    seal(live_acme)
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET recorded_at = (to_char(recorded_at AT TIME ZONE 'UTC',"
            " 'YYYY-MM-DD HH24:MI:SS.MS') || '+00 BC')::timestamptz WHERE sequence = 4 AND run_id = 'run-1' AND tenant_id = %s",
            [live_acme.id],
        )
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.tampering, bad.sequence) == (Tampering.CONTENT, 4)


def test_the_api_and_the_worker_report_such_a_row(no_time: TenantKit, auditor: ApiClient) -> None:
    report = auditor.post("/v1/memory/runs/run-b/verify", {})
    assert report.status_code == 200, report.content
    assert report.json()["firstBad"]["sequence"] == 4
    entries = auditor.get("/v1/memory/runs/run-b/log")
    assert [entry["sequence"] for entry in entries.json()["data"]] == list(range(8))
    job = auditor.post("/v1/memory/verifications", {}).json()
    while run_verifications(system_principal(no_time.id, no_time.slug, id="verifier")):
        pass
    job = auditor.get(f"/v1/memory/verifications/{job['id']}").json()
    assert (job["status"], job["state"]) == ("done", "tampered")
    for in_sql in (False, True):
        whole = verify_tenant(principal=no_time.principal("auditor"), in_sql=in_sql)
        assert whole.state is State.TAMPERED


def test_such_a_run_is_refused_by_name_and_the_others_are_sealed(
    no_time: TenantKit, own_signing_keys: None
) -> None:
    sealed = seal(no_time)
    assert [(bad.run_id, bad.sequence) for bad in sealed.refused] == [("run-b", 4)]
    assert verified_twice(no_time, "run-c").state is State.VERIFIED
    assert rotate_signing_key().not_sealed == ()


@pytest.mark.parametrize("sequence", [0, 4, 7])
@pytest.mark.parametrize("column", EMPTIED)
def test_an_emptied_column_is_named_with_its_place(
    live_acme: TenantKit, superuser_url: str, column: str, sequence: int
) -> None:
    fill(live_acme)
    seal(live_acme)
    fill(live_acme, 3)
    with hands_on(superuser_url, live_acme) as hands:
        hands.do(f"ALTER TABLE log_entry ALTER COLUMN {column} DROP NOT NULL")
        hands.do(
            f"UPDATE log_entry SET {column} = NULL WHERE tenant_id = %(t)s AND run_id = 'run-1' AND sequence = %(s)s",
            s=sequence,
        )
        bad = hands.report("run-1").first_bad
        assert bad is not None
        assert (bad.run_id, bad.sequence, bad.tampering) == ("run-1", sequence, Tampering.CONTENT)
        assert (bad.expected, bad.found) == ("a whole entry", f"no {EMPTIED[column]}")


@pytest.mark.parametrize("column", ["head_hash", "prev_hash", "entry_count"])
def test_an_emptied_head_row_is_tampering(
    live_acme: TenantKit, superuser_url: str, column: str
) -> None:
    fill(live_acme)
    seal(live_acme)
    with hands_on(superuser_url, live_acme) as hands:
        hands.do(f"ALTER TABLE run_head ALTER COLUMN {column} DROP NOT NULL")
        hands.do(f"UPDATE run_head SET {column} = NULL WHERE run_id = 'run-1'")
        assert hands.report("run-1").state is State.TAMPERED


@pytest.mark.parametrize("text", ["no JSON", "{}", '"\\u0000"', None])
@pytest.mark.parametrize("rehashed", [False, True])
def test_a_leaf_that_is_no_json_is_tampering_at_its_place(
    live_acme: TenantKit, superuser_url: str, text: str | None, rehashed: bool
) -> None:
    fill(live_acme)
    seal(live_acme)
    fill(live_acme, 3, "run-2")
    seal(live_acme)
    with hands_on(superuser_url, live_acme) as hands:
        alter(hands.cursor)
        hash = ", leaf_hash = sha256('\\x00'::bytea || convert_to(%(x)s, 'UTF8'))"
        hands.do(
            f"UPDATE seal_leaf SET leaf_text = %(x)s{hash if rehashed and text else ''} WHERE tenant_id = %(t)s"
            " AND run_id = 'run-2'",
            x=text,
        )
        report = hands.report("run-1")
        assert report.first_bad is not None
        assert report.first_bad.tampering is Tampering.CHECKPOINT
        hands.do(
            "SELECT min(leaf_index) FROM seal_leaf WHERE tenant_id = %(t)s AND run_id = 'run-2'"
        )
        [place] = hands.cursor.fetchone() or [None]
        assert report.first_bad.sequence <= place


def alter(cursor: psycopg.Cursor) -> None:
    """What the owner of the table can do to it."""
    for column in ("run_id", "leaf_type", "from_sequence", "to_sequence"):
        cursor.execute(f"ALTER TABLE seal_leaf ALTER COLUMN {column} DROP EXPRESSION")
    cursor.execute("ALTER TABLE seal_leaf ALTER COLUMN leaf_text DROP NOT NULL")
    cursor.execute("ALTER TABLE seal_leaf DROP CONSTRAINT seal_leaf_hash_is_of_text")


@pytest.mark.parametrize("column", [*EMPTIED, "recorded_at"])
def test_what_is_left_of_an_emptied_row_is_answered_and_called_damaged(
    column: str, live_acme: TenantKit, superuser_url: str
) -> None:
    stored = fill(live_acme, 5)
    fill(live_acme, 2, "whole")
    with attacker(superuser_url) as session:
        session.execute(f"ALTER TABLE log_entry ALTER COLUMN {column} DROP NOT NULL")
        session.execute(
            f"UPDATE log_entry SET {column} = NULL WHERE tenant_id = %s AND id = %s",
            [live_acme.id, stored[2].id],
        )
    reader = live_acme.client("auditor")
    try:
        answer = reader.get("/v1/memory/runs/run-1/log")
        assert answer.status_code == 200
        damaged = [one.get("meta", {}).get("damaged", False) for one in answer.json()["data"]]
        assert damaged == [False, False, True, False, False]
        if column != "id":
            one = reader.get(f"/v1/memory/log/{stored[2].id}")
            assert (one.status_code, one.json()["meta"]["damaged"]) == (200, True)
        assert reader.get("/v1/memory/runs").status_code == 200
        report = reader.post("/v1/memory/runs/run-1/verify", {}).json()
        assert (report["state"], report["firstBad"]["sequence"]) == ("tampered", 2)
        pages = person(live_acme, "auditor")
        for view in ("timeline", "cause", "table"):
            page = pages.get(f"audit/run/run-1/?view={view}")
            assert page.status_code == 200, view
        assert pages.get("audit/e/run-1/2/").status_code in (200, 404)
        assert reader.post("/v1/memory/runs/run-1/export").status_code == 200
    finally:
        with attacker(superuser_url) as session:
            session.execute(
                "DELETE FROM log_entry WHERE tenant_id = %s AND run_id = 'run-1'", [live_acme.id]
            )
            session.execute(f"ALTER TABLE log_entry ALTER COLUMN {column} SET NOT NULL")


def test_a_head_row_whose_hash_is_gone_is_listed_without_it(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 3)
    with attacker(superuser_url) as session:
        session.execute("ALTER TABLE run_head ALTER COLUMN head_hash DROP NOT NULL")
        session.execute(
            "UPDATE run_head SET head_hash = NULL WHERE tenant_id = %s AND run_id = 'run-1'",
            [live_acme.id],
        )
    try:
        listed = live_acme.client("auditor").get("/v1/memory/runs").json()["data"]
        assert {one["runId"] for one in listed} >= {"run-1"}
        assert person(live_acme, "auditor").get("audit/runs/").status_code == 200
        assert person(live_acme, "auditor").get("audit/run/run-1/").status_code == 200
    finally:
        with attacker(superuser_url) as session:
            session.execute(
                "DELETE FROM run_head WHERE tenant_id = %s AND run_id = 'run-1'", [live_acme.id]
            )
            session.execute("ALTER TABLE run_head ALTER COLUMN head_hash SET NOT NULL")
