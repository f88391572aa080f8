"""After an erasure the database's files are cleared too: asked for with it, run once a day, seen in the bytes on disk."""

import secrets
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from memory.actions.maintain_pages import maintain_pages, maintain_when_due
from memory.page_maintenance import ask_for_maintenance, standing
from tests.builders import TenantKit
from tests.lifecycle.test_erasure import ANN, run
from tests.records.builders import a_record, body_of
from tests.worker.processes import until

AT_ONCE = timedelta(0)


@pytest.fixture
def nothing_due(live_db: None, superuser_url: str) -> None:
    """No maintenance was ever asked for."""
    with psycopg.connect(superuser_url, autocommit=True) as superuser:
        superuser.execute("DELETE FROM page_maintenance")


def files_that_say(superuser_url: str, word: str) -> set[str]:
    """Tables and indexes whose files hold the word: read from disk, dead rows and free space included."""
    found = set()
    with psycopg.connect(superuser_url, autocommit=True) as superuser:
        superuser.execute("CHECKPOINT")
        relations = superuser.execute(
            "SELECT c.relname, pg_relation_filepath(c.oid) FROM pg_class c "
            "WHERE c.relkind IN ('r', 'i', 't') AND pg_relation_filepath(c.oid) IS NOT NULL "
            "AND c.relnamespace IN ('public'::regnamespace, 'pg_toast'::regnamespace) AND pg_relation_size(c.oid) > 0"
        ).fetchall()
        for name, path in relations:
            (is_said,) = superuser.execute(
                "SELECT position(convert_to(%s, 'UTF8') IN pg_read_binary_file(%s)) > 0",
                [word, path],
            ).fetchone()  # type: ignore[misc]  # one row
            if is_said:
                found.add(name)
    return found


def planted(kit: TenantKit) -> str:
    """A word that nobody else ever says, in a fact, a memory and the log."""
    word = f"canary{secrets.token_hex(6)}"
    app = kit.client("app", users=[ANN])
    fact = {"type": "note", "scope": {"userId": ANN}, "content": {"said": word}}
    body_of(app.post("/v1/memory/facts", fact), 201)
    body_of(app.post("/v1/memory/records", a_record(f"{word} seat", subject=ANN)), 201)
    entry = {"kind": "user-message", "scope": {"userId": ANN}, "payload": {"text": word}}
    body_of(app.post("/v1/memory/runs/r1/log", entry), 201)
    return word


def erase(kit: TenantKit) -> None:
    asked = {"subject": {"kind": "user", "id": ANN}}
    body_of(kit.client("admin").post("/v1/memory/erasures", asked), 202)
    run(kit)


def test_after_the_maintenance_no_file_says_what_the_person_said(
    live_acme: TenantKit, nothing_due: None, superuser_url: str
) -> None:
    word = planted(live_acme)
    erase(live_acme)
    assert files_that_say(superuser_url, word)  # some pages the database may have tidied by itself
    done = maintain_when_due(settled_after=AT_ONCE)
    assert done is not None
    assert done.vacuumed == 0

    def is_gone() -> bool:
        if not files_that_say(superuser_url, word):
            return True
        maintain_pages()  # a transaction that was older than the erasure kept it so far
        return False

    until(is_gone)


def test_large_tables_have_their_indexes_made_anew_beside_the_running_work(
    live_acme: TenantKit, nothing_due: None, superuser_url: str
) -> None:
    word = planted(live_acme)
    erase(live_acme)
    done = maintain_pages(rewrite_max_bytes=-1)
    assert done.rewritten == 0
    with psycopg.connect(superuser_url) as superuser:
        indexes = {
            row[0] for row in superuser.execute("SELECT relname FROM pg_class WHERE relkind = 'i'")
        }
        half_made = superuser.execute(
            "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
        ).fetchone()
    assert not files_that_say(superuser_url, word) & indexes
    assert half_made == (0,)


def test_it_is_due_with_the_erasure_waits_for_older_transactions_and_runs_once_a_day(
    live_acme: TenantKit, nothing_due: None
) -> None:
    assert maintain_when_due(settled_after=AT_ONCE) is None
    erase(live_acme)
    assert standing().asked_at is not None
    assert maintain_when_due() is None  # asked for within the last minute
    assert maintain_when_due(settled_after=AT_ONCE) is not None
    now = standing()
    assert (now.asked_at, now.failure, now.left) == (None, None, 0)
    ask_for_maintenance()
    ask_for_maintenance()
    assert maintain_when_due(settled_after=AT_ONCE) is None  # one ran today


def test_a_table_in_use_is_not_waited_for_but_freed(
    live_acme: TenantKit, nothing_due: None, superuser_url: str
) -> None:
    locked, users = threading.Event(), []

    def use() -> None:
        with psycopg.connect(superuser_url) as other:
            other.execute("LOCK TABLE receipt IN ACCESS SHARE MODE")
            locked.set()
            other.execute("SELECT pg_sleep(3)")

    def on_table(table: str, done: int, all: int) -> None:
        if table == "receipt":
            users.append(threading.Thread(target=use))
            users[0].start()
            assert locked.wait(10.0)

    done = maintain_pages(on_table=on_table)
    users[0].join()
    assert done.vacuumed == 1
    assert done.rewritten > 20


def test_what_goes_wrong_is_said_and_tried_again_the_next_day(
    live_acme: TenantKit, nothing_due: None, monkeypatch: Any
) -> None:
    from memory.actions import maintain_pages as action

    erase(live_acme)

    def refuse(**_: Any) -> None:
        raise action.NotOwner

    with monkeypatch.context() as patched:
        patched.setattr(action, "maintain_pages", refuse)
        assert maintain_when_due(settled_after=AT_ONCE) is None
    assert standing().failure == "no-owner"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE page_maintenance SET started_at = started_at - interval '25 hours'")
    ask_for_maintenance()
    assert maintain_when_due(settled_after=AT_ONCE) is not None
    assert standing().failure is None


def test_a_maintenance_that_was_cut_off_does_not_block_the_next_for_ever(
    live_acme: TenantKit, nothing_due: None
) -> None:
    erase(live_acme)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE page_maintenance SET status = 'running', started_at = clock_timestamp() - interval '26 hours'"
        )
    ask_for_maintenance()
    assert maintain_when_due(settled_after=AT_ONCE) is not None


def test_the_command_says_how_many_tables_it_wrote_anew(
    live_acme: TenantKit, nothing_due: None, capsys: Any
) -> None:
    call_command("maintain_pages")
    assert "tables written anew, 0 larger ones freed." in capsys.readouterr().out
