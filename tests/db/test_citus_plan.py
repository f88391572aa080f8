"""The plan for Citus: run twice on a database whose Citus functions are stood in for by ones that keep its rules."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from memory.management.command import Refused
from memory.scale.citus_plan import placement
from tests.db.test_catalog import tenant_tables

# What Citus refuses, as far as a catalog shows it. The one trigger of whole statements looks at entries of one tenant, which
# one statement writes on one shard.
STAND_IN = """
CREATE TABLE pg_dist_partition (logicalrelid regclass PRIMARY KEY, partmethod "char", beside text);
CREATE FUNCTION stands_alone(moved regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = moved) THEN
    RAISE EXCEPTION '% is distributed already', moved; END IF;
  IF EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND moved IN (conrelid, confrelid)) THEN
    RAISE EXCEPTION '% has a foreign key', moved; END IF;
END $$;
CREATE FUNCTION create_reference_table(moved regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  PERFORM stands_alone(moved);
  INSERT INTO pg_dist_partition VALUES (moved, 'n');
END $$;
CREATE FUNCTION create_distributed_table(moved regclass, by_column text, colocate_with text) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
  PERFORM stands_alone(moved);
  IF current_setting('citus.enable_unsafe_triggers') <> 'on' THEN RAISE EXCEPTION 'triggers'; END IF;
  IF EXISTS (SELECT FROM pg_index i WHERE indrelid = moved AND indisunique AND NOT EXISTS (
      SELECT FROM pg_attribute a WHERE a.attrelid = moved AND a.attname = by_column AND a.attnum = ANY (i.indkey))) THEN
    RAISE EXCEPTION '% is unique across tenants', moved; END IF;
  IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = moved AND NOT tgisinternal AND tgtype & 1 = 0 AND tgtype & 32 = 0
      AND tgname <> 'log_entry_meets_no_erasure') THEN
    RAISE EXCEPTION '% has a trigger of whole statements that write', moved; END IF;
  IF EXISTS (SELECT FROM pg_policy WHERE polrelid = moved AND pg_get_expr(polqual, polrelid) ILIKE '%select%') THEN
    RAISE EXCEPTION '% has a policy with a subquery', moved; END IF;
  INSERT INTO pg_dist_partition VALUES (moved, 'h', colocate_with);
END $$;
"""
FOREIGN_KEYS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND connamespace = 'public'::regnamespace ORDER BY 1, 2
"""


@pytest.fixture
def database(superuser_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(superuser_url) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def plan(db: None) -> str:
    out = StringIO()
    call_command("citus_plan", stdout=out)
    return out.getvalue()


def test_without_citus_the_plan_says_so_and_changes_nothing(
    database: psycopg.Connection[Any], plan: str
) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="Citus is not in this database"):
        database.execute(plan.encode())


def test_the_plan_moves_each_table_once_and_keeps_every_foreign_key(
    database: psycopg.Connection[Any], plan: str
) -> None:
    before = database.execute(FOREIGN_KEYS).fetchall()
    database.execute(STAND_IN.encode())
    for _ in range(2):
        database.execute(plan.encode())
    assert database.execute(FOREIGN_KEYS).fetchall() == before
    moved = database.execute("SELECT logicalrelid::text, partmethod, beside FROM pg_dist_partition")
    places = {name: (how, beside) for name, how, beside in moved.fetchall()}
    distributed = {name for name, (how, _) in places.items() if how == "h"}
    assert {"log_entry", "fact_revision", "memory_record"} <= distributed
    assert len({beside for _, beside in places.values()} - {None, "none"}) == 1
    assert tenant_tables() - distributed == {"api_key", "member"}


def test_what_was_begun_is_finished(database: psycopg.Connection[Any], plan: str) -> None:
    before = database.execute(FOREIGN_KEYS).fetchall()
    database.execute(STAND_IN.encode())
    cut = plan.index("-- What was dropped above.")
    database.execute(plan[:cut].encode())
    assert database.execute(FOREIGN_KEYS).fetchall() != before
    database.execute(plan.encode())
    assert database.execute(FOREIGN_KEYS).fetchall() == before


@pytest.mark.django_db
def test_the_job_queue_and_what_is_of_the_framework_stay_on_the_coordinator() -> None:
    places = placement()
    moved = {*places.distributed, *places.reference}
    assert "django_session" not in moved
    assert not [name for name in moved if name.startswith("procrastinate_")]
    assert "auth_user" in places.reference


def test_what_could_not_be_spread_is_named(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Had a key to be found within its tenant only, the one index across tenants would stand in the way."""
    monkeypatch.setattr(
        "memory.scale.citus_plan.FOUND_BEFORE_A_TENANT_IS_SET", frozenset({"tenant", "member"})
    )
    with pytest.raises(Refused, match="api_key_prefix_is_unique of api_key"):
        call_command("citus_plan")
