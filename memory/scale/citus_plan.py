"""The SQL that turns this database's tables into Citus distributed tables by tenant, read from pg_catalog.

A table with a tenant is distributed by `tenant_id`, beside all others. What a tenant is found by, before one is set, is a
reference table, and so is what their foreign keys lead to; every other table stays on the coordinator. Each step asks first
whether it was done, so the plan may be run again. Source: STACK, "Scale past one machine".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db import connection

FOUND_BEFORE_A_TENANT_IS_SET = frozenset({"tenant", "api_key", "member"})
"""A sign-in, a key or a slug leads to its tenant: these are asked on the coordinator, without one."""

_TABLES = """
SELECT c.relname, EXISTS (
  SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND a.attnotnull AND NOT a.attisdropped)
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
ORDER BY c.relname
"""
_FOREIGN_KEYS = """
SELECT k.conname, t.relname, r.relname, pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0 AND t.relnamespace = 'public'::regnamespace
ORDER BY t.relname, k.conname
"""
_UNIQUE_WITHOUT_TENANT = """
SELECT t.relname, x.relname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace AND NOT EXISTS (
  SELECT FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'tenant_id' AND a.attnum = ANY (i.indkey))
"""
_HEADER = """\
-- kindmem on Citus: distributes the tables by tenant. Run by psql as the owner of the tables, on the coordinator, with the
-- product stopped: psql --single-transaction --set ON_ERROR_STOP=1 --file plan.sql
-- Before it: CREATE EXTENSION citus and vector on every node, the roles of kindmem/postgres/roles.sql on every node.
-- After it: start the product with KINDMEM_CITUS=1.
DO $$ BEGIN
  IF to_regproc('create_distributed_table') IS NULL THEN
    RAISE EXCEPTION 'Citus is not in this database' USING HINT = 'CREATE EXTENSION citus on every node, then run this again.';
  END IF;
  EXECUTE format('ALTER DATABASE %I SET citus.enable_unsafe_triggers TO on', current_database());
END $$;
-- Every trigger of the product works row by row, within one tenant.
SET citus.enable_unsafe_triggers TO on;
-- A distributed table may refer to a reference table only in one connection to each node.
SET citus.multi_shard_modify_mode TO 'sequential';
"""


class NoPlan(Exception):
    """The tables can't be spread by tenant as they are; says which one, and why."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    name: str
    table: str
    refers_to: str
    definition: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Which table goes where, by name; what is in neither stays on the coordinator."""

    distributed: tuple[str, ...]
    reference: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]
    """Those that have a moved table on either side: dropped before and added after."""


def placement() -> Placement:
    """Read from the catalog of the database. Raises NoPlan."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        has_tenant: dict[str, bool] = dict(cursor.fetchall())
        cursor.execute(_FOREIGN_KEYS)
        keys = [ForeignKey(*row) for row in cursor.fetchall()]
        cursor.execute(_UNIQUE_WITHOUT_TENANT)
        uniques: list[tuple[str, str]] = cursor.fetchall()
    reference = _reference_tables(has_tenant, keys)
    distributed = tuple(n for n, yes in has_tenant.items() if yes and n not in reference)
    for table, index in uniques:
        if table in distributed:
            raise NoPlan(f"{index} of {table} is unique across tenants")
    for key in keys:
        if key.refers_to in distributed and key.table not in distributed:
            raise NoPlan(f"{key.name} leads from {key.table}, which has no tenant, to one's rows")
    moved = {*distributed, *reference}
    return Placement(
        distributed=distributed,
        reference=tuple(sorted(reference)),
        foreign_keys=tuple(key for key in keys if {key.table, key.refers_to} & moved),
    )


def _reference_tables(has_tenant: Mapping[str, bool], keys: list[ForeignKey]) -> set[str]:
    """What is found before a tenant is set, and everything that moved tables' foreign keys lead to."""
    found = set(FOUND_BEFORE_A_TENANT_IS_SET)
    moved = found | {name for name, yes in has_tenant.items() if yes}
    while True:
        led_to = {
            key.refers_to
            for key in keys
            if key.table in moved | found and not has_tenant[key.refers_to]
        }
        if led_to <= found:
            return found
        found |= led_to


def citus_plan() -> str:
    """The plan, as a script for psql. Raises NoPlan."""
    return "\n".join([_HEADER, *_statements(placement())]) + "\n"


def _statements(places: Placement) -> Iterator[str]:
    yield "-- Foreign keys go first and come back last: both sides must have moved."
    for key in places.foreign_keys:
        moved = " AND ".join(_has_moved(one) for one in (key.table, key.refers_to))
        yield _unless(
            moved if key.refers_to != key.table else _has_moved(key.table),
            f"ALTER TABLE {_name(key.table)} DROP CONSTRAINT IF EXISTS {_name(key.name)}",
        )
    yield "-- Whole on every node."
    for table in places.reference:
        yield _unless(
            _has_moved(table), f"PERFORM create_reference_table({_text('public.' + table)})"
        )
    yield "-- By tenant, all of one tenant on one node."
    beside = "none"
    for table in places.distributed:
        yield _unless(
            _has_moved(table),
            f"PERFORM create_distributed_table({_text('public.' + table)}, 'tenant_id', colocate_with => {_text(beside)})",
        )
        beside = f"public.{places.distributed[0]}"
    yield "-- What was dropped above."
    for key in places.foreign_keys:
        yield _unless(
            f"EXISTS (SELECT FROM pg_constraint WHERE conname = {_text(key.name)} "
            f"AND conrelid = {_text('public.' + key.table)}::regclass)",
            f"ALTER TABLE {_name(key.table)} ADD CONSTRAINT {_name(key.name)} {key.definition}",
        )


def _unless(done: str, statement: str) -> str:
    return f"DO $$ BEGIN IF NOT ({done}) THEN\n  {statement};\nEND IF; END $$;"


def _has_moved(table: str) -> str:
    return (
        "EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = "
        f"{_text('public.' + table)}::regclass)"
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
