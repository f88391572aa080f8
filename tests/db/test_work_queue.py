"""The queue's tables are the installed release's own, hold nothing of anybody, and are asked without waiting."""

import threading
from importlib.resources import files
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from kindmem.heartbeat import beat, worker_lag_seconds
from kindmem.management.commands import doctor
from memory.tenancy import tenant_context
from memory.work import WORKS, begin_soon
from tests.builders import TenantKit, make_tenant

# What we add to theirs, and what we leave out of theirs: the migration says why.
OURS = (
    "procrastinate_jobs_name_a_tenant_alone",
    "procrastinate_jobs_locks_name_a_tenant_alone",
    "procrastinate_jobs_waiting_by_lock",
)
LEFT_OUT = (
    "procrastinate_jobs_notify_queue_job_inserted_v1",
    "procrastinate_jobs_notify_queue_job_aborted_v1",
    "procrastinate_notify_queue_job_inserted_v1",
    "procrastinate_notify_queue_abort_job_v1",
)
_LOOKS = {
    "columns": (
        "SELECT table_name, column_name, data_type, column_default, is_nullable FROM information_schema.columns "
        "WHERE table_schema = %(schema)s AND table_name LIKE 'procrastinate%%'"
    ),
    "functions": (
        "SELECT p.proname, p.prosrc, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid) FROM pg_proc p "
        "WHERE p.pronamespace = %(schema)s::regnamespace AND p.proname LIKE 'procrastinate%%'"
    ),
    "constraints": (
        "SELECT c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c "
        "WHERE c.connamespace = %(schema)s::regnamespace AND c.conrelid::regclass::text LIKE '%%procrastinate%%'"
    ),
    "indexes": (
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %(schema)s AND tablename LIKE 'procrastinate%%'"
    ),
    "triggers": (
        "SELECT t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE NOT t.tgisinternal AND c.relnamespace = %(schema)s::regnamespace AND c.relname LIKE 'procrastinate%%'"
    ),
    "enums": (
        "SELECT t.typname, string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_type t "
        "JOIN pg_enum e ON e.enumtypid = t.oid "
        "WHERE t.typnamespace = %(schema)s::regnamespace AND t.typname LIKE 'procrastinate%%' GROUP BY t.typname"
    ),
}


def _seen(admin: psycopg.Connection[Any], look: str, schema: str) -> set[tuple[Any, ...]]:
    rows = admin.execute(_LOOKS[look], {"schema": schema}).fetchall()
    return {
        tuple(str(value).replace(f"{schema}.", "") for value in row)
        for row in rows
        if row[0] not in (*OURS, *LEFT_OUT)
    }


def test_the_tables_are_those_of_the_installed_release(superuser_url: str, db: None) -> None:
    theirs = (files("procrastinate.sql") / "schema.sql").read_text("utf-8")
    with psycopg.connect(superuser_url) as admin:
        admin.execute("CREATE SCHEMA theirs")
        admin.execute("SET LOCAL search_path = theirs")
        admin.execute(theirs)
        for look in _LOOKS:
            expected = _seen(admin, look, "theirs")
            admin.execute("SET LOCAL search_path = public")
            found = _seen(admin, look, "public")
            admin.execute("SET LOCAL search_path = theirs")
            assert found == expected, look
            assert expected, look
        admin.rollback()


def _insert(**more: Any) -> None:
    row = {"queue": "near", "task": "seal", "lock": None, "queueing": None, "args": "{}", **more}
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args) VALUES (%(queue)s::text, "
            "%(task)s::text, %(lock)s::text, %(queueing)s::text, %(args)s::jsonb)",
            row,
        )


@pytest.mark.parametrize(
    "text",
    [
        {"args": '{"tenant_id": "Maria Lund"}'},
        {"args": '{"tenant_id": {"name": "Maria"}}'},
        {"args": '{"name": "x"}'},
        {"args": '{"timestamp": "Maria"}'},
        {"args": '{"timestamp": ["Maria"]}'},
        {"args": '["Maria"]'},
        {"args": '"Maria"'},
        {"lock": "seal:Maria"},
        {"queueing": "Maria Lund"},
        {"task": "Maria Lund"},
        {"queue": "Maria"},
    ],
    ids=str,
)
def test_a_job_holds_no_text_of_anybody_wherever_it_is_put(db: None, text: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        _insert(**text)


def test_a_job_names_a_tenant_and_a_moment(db: None) -> None:
    tenant = uuid4()
    _insert(args=f'{{"tenant_id": "{tenant}", "timestamp": 1764500000}}', lock=f"seal:{tenant}")


@pytest.mark.parametrize(
    "error", ["value 'Maria Lund' is too long", "Maria, Lund", ""], ids=["text", "names", "empty"]
)
def test_a_failure_is_kept_by_its_kind_and_never_in_words(db: None, error: str) -> None:
    with (
        pytest.raises(IntegrityError),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "INSERT INTO work_failure (work, tenant_id, error) VALUES ('seal', %s::uuid, %s::text)",
            [uuid4(), error],
        )


def _jobs(tenant: UUID, *, work: str = "verify") -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT task_name, status::text FROM procrastinate_jobs WHERE lock = %s::text ORDER BY id",
            [f"{work}:{tenant}"],
        )
        return list(cursor.fetchall())


def test_what_is_asked_for_often_is_one_job(live_db: None) -> None:
    kit = make_tenant()
    for _ in range(3):
        with tenant_context(kit.id):
            begin_soon("verify", kit.id)
            begin_soon("verify", kit.id)
    assert _jobs(kit.id) == [("verify", "todo")]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing' WHERE lock = %s::text",
            [f"verify:{kit.id}"],
        )
    begin_soon("verify", kit.id)
    assert _jobs(kit.id) == [("verify", "doing")]


def test_work_is_asked_for_with_the_act_or_not_at_all(live_db: None) -> None:
    kit = make_tenant()
    with tenant_context(kit.id):
        begin_soon("verify", kit.id)
        transaction.set_rollback(True)
    assert _jobs(kit.id) == []


def test_nobody_waits_for_another_act_that_asks_for_the_same(
    live_db: None, app_conninfo: str
) -> None:
    kit = make_tenant()
    kind = WORKS["verify"]
    asked = "SELECT defer_work('verify', %s::text, %s::int, %s::uuid)"
    with psycopg.connect(app_conninfo) as one, psycopg.connect(app_conninfo) as other:
        other.execute("SET statement_timeout = '5s'")
        given = [kind.queue, kind.urgency, kit.id]
        assert one.execute(asked, given).fetchone() == (True,)
        assert other.execute(asked, given).fetchone() == (False,)
        one.commit()
        other.rollback()
        assert other.execute(asked, given).fetchone() == (False,)
    assert _jobs(kit.id) == [("verify", "todo")]


def test_many_that_ask_at_once_make_one_job(live_db: None, app_conninfo: str) -> None:
    kit = make_tenant()
    kind = WORKS["seal"]
    barrier = threading.Barrier(6)

    def ask() -> None:
        with psycopg.connect(app_conninfo, autocommit=True) as session:
            barrier.wait(10)
            for _ in range(30):
                session.execute(
                    "SELECT defer_work('seal', %s::text, %s::int, %s::uuid)",
                    [kind.queue, kind.urgency, kit.id],
                )

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _jobs(kit.id, work="seal") == [("seal", "todo")]


def _due(works: list[str]) -> set[tuple[UUID, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, work FROM work_due(%s::text[])", [works])
        return {(UUID(str(row[0])), row[1]) for row in cursor.fetchall()}


def test_the_look_names_the_tenant_that_has_something_to_do_and_no_other(live_db: None) -> None:
    busy, idle = make_tenant(), make_tenant()
    admin = busy.client("admin")
    assert admin.post("/v1/memory/erasures", {"factId": "nothing"}).status_code == 202
    assert admin.post("/v1/memory/verifications", {}).status_code == 202
    body = {"kind": "tool-call", "scope": {}}
    own = busy.client("agent", may=("read", "append", "tenant-wide"))
    assert own.post("/v1/memory/runs/r/log", body).status_code == 201
    found = _due(["run-erasures", "verify", "seal", "reindex", "deliver-webhooks"])
    assert {work for tenant, work in found if tenant == busy.id} == {
        "run-erasures",
        "verify",
        "seal",
    }
    assert not {work for tenant, work in found if tenant == idle.id}


def test_the_look_finds_a_closed_tenant_nothing_to_do(live_db: None) -> None:
    kit = make_tenant()
    assert (kit.id, "sweep-retention") in _due(["sweep-retention"])
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute("UPDATE tenant SET closed_at = now() WHERE id = %s::uuid", [kit.id])
    assert (kit.id, "sweep-retention") not in _due(["sweep-retention"])


def test_work_of_a_worker_that_fell_silent_goes_back_to_the_queue(live_acme: TenantKit) -> None:
    begin_soon("seal", live_acme.id)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 minute') RETURNING id"
        )
        (silent,) = cursor.fetchone()
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s::bigint WHERE lock = %s::text",
            [silent, f"seal:{live_acme.id}"],
        )
        cursor.execute("SELECT take_back_work('{}', '{}', 3600)")
        assert _jobs(live_acme.id, work="seal") == [("seal", "doing")]
        cursor.execute("SELECT take_back_work('{}', '{}', 10)")
    assert _jobs(live_acme.id, work="seal") == [("seal", "todo")]


def test_work_that_fails_again_and_again_is_named_by_doctor_with_its_tenant(live_db: None) -> None:
    kit = make_tenant()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM work_failure")
        cursor.execute(
            "INSERT INTO work_failure (work, tenant_id, error, in_a_row) VALUES ('seal', %s::uuid, 'seal-refused', 2)",
            [kit.id],
        )
    [well] = doctor._work()
    assert well.is_ok
    with connection.cursor() as cursor:
        cursor.execute("UPDATE work_failure SET in_a_row = 3")
    [found] = doctor._work()
    assert not found.is_ok
    assert f"seal in {kit.slug} failed 3 times in a row, last with seal-refused" in found.message
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM work_failure")


def test_a_worker_that_lives_but_leaves_jobs_waiting_is_late(db: None) -> None:
    beat()
    assert (worker_lag_seconds() or 0) < 60
    _insert(args=f'{{"tenant_id": "{uuid4()}"}}')
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET scheduled_at = now() - interval '5 minutes'")
    assert (worker_lag_seconds() or 0) >= 300
