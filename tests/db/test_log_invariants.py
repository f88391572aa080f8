"""The log's rules, tried past Python: raw SQL as the app role, and as the owner."""

import psycopg
import pytest
from psycopg import errors

from memory.access import Principal
from memory.actions.append_log_entries import append_log_entries
from memory.log_entry import NewEntry
from memory.tenancy import tenant_context
from tests.builders import TenantKit, make_tenant

ZERO = bytes(32)


@pytest.fixture
def principal(live_acme: TenantKit) -> Principal:
    return live_acme.principal("agent", projects=["p1"])


@pytest.fixture
def run(live_acme: TenantKit, principal: Principal) -> str:
    entries = [
        NewEntry(
            kind="tool-call",
            scope={"tenantId": live_acme.slug, "projectId": "p1"},
            id=f"e{n}-{live_acme.slug}",
            payload=n,
        )
        for n in range(3)
    ]
    with tenant_context(live_acme.id):
        append_log_entries(principal=principal, run_id="run-1", entries=entries)
    return "run-1"


def as_role(url: str, tenant: TenantKit, statement: str, **parameters: object) -> int:
    """Rows touched by one statement of this role in the tenant's transaction."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(tenant.id)])
        return connection.execute(statement, {"tenant": tenant.id, **parameters}).rowcount


@pytest.fixture(params=["app", "owner"])
def url(request: pytest.FixtureRequest, app_conninfo: str, owner_conninfo: str) -> str:
    return app_conninfo if request.param == "app" else owner_conninfo


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log_entry SET kind = 'tool-result' WHERE tenant_id = %(tenant)s AND sequence = 1",
        "UPDATE log_entry SET payload_text = '7' WHERE tenant_id = %(tenant)s AND sequence = 1",
        "UPDATE log_entry SET actor = 'x' WHERE tenant_id = %(tenant)s AND sequence = 1",
        "UPDATE log_entry SET caused_by = 'x' WHERE tenant_id = %(tenant)s AND sequence = 1",
        "UPDATE log_entry SET entry_hash = prev_hash WHERE tenant_id = %(tenant)s AND sequence = 1",
        "DELETE FROM log_entry WHERE tenant_id = %(tenant)s AND sequence = 2",
        "UPDATE run_head SET next_sequence = 1, entry_count = 1 WHERE tenant_id = %(tenant)s",
        "UPDATE run_head SET first_at = now(), next_sequence = 9, entry_count = 9 WHERE tenant_id = %(tenant)s",
    ],
)
def test_no_stored_entry_or_head_is_changed_back(
    live_acme: TenantKit, run: str, url: str, change: str
) -> None:
    with pytest.raises((errors.CheckViolation, errors.InsufficientPrivilege)) as refused:
        as_role(url, live_acme, change)
    if isinstance(refused.value, errors.CheckViolation):
        assert refused.value.diag.constraint_name in (
            "log_entry_append_only",
            "run_head_moves_forward",
        )


@pytest.mark.parametrize("table", ["log_entry", "run_head"])
def test_nobody_truncates_the_log(live_acme: TenantKit, run: str, url: str, table: str) -> None:
    with pytest.raises(
        (errors.CheckViolation, errors.InsufficientPrivilege, errors.FeatureNotSupported)
    ):
        as_role(url, live_acme, f"TRUNCATE {table}")


def test_erasing_a_payload_is_the_one_change_there_is(
    live_acme: TenantKit, run: str, app_conninfo: str
) -> None:
    erase = (
        "UPDATE log_entry SET payload_text = NULL, payload_salt = NULL, payload_erased_at = now() "
        "WHERE tenant_id = %(tenant)s AND sequence = 1"
    )
    assert as_role(app_conninfo, live_acme, erase) == 1
    with pytest.raises(errors.CheckViolation):
        as_role(app_conninfo, live_acme, erase)
    with pytest.raises(errors.CheckViolation):
        as_role(
            app_conninfo,
            live_acme,
            "UPDATE log_entry SET payload_text = '1', payload_erased_at = NULL WHERE tenant_id = %(tenant)s AND sequence = 1",
        )


INSERT = """
INSERT INTO log_entry (tenant_id, run_id, sequence, id, kind, scope_text, recorded_at, prev_hash, entry_hash, writer, writer_role)
VALUES (%(tenant)s, 'run-1', %(sequence)s, %(id)s, 'tool-call', '{}', now(), %(prev)s, %(hash)s, 'x', 'agent')
"""


@pytest.mark.parametrize(
    ("sequence", "prev", "refusal"),
    [
        (4, b"a" * 32, "log_entry_continues_chain"),  # a gap
        (3, b"a" * 32, "log_entry_continues_chain"),  # another predecessor
        (0, ZERO, "log_entry_pkey"),  # a second first entry
        (-1, ZERO, "log_entry_continues_chain"),
    ],
)
def test_an_entry_that_does_not_continue_its_run_is_refused(
    live_acme: TenantKit, run: str, url: str, sequence: int, prev: bytes, refusal: str
) -> None:
    with pytest.raises((errors.CheckViolation, errors.UniqueViolation)) as refused:
        as_role(url, live_acme, INSERT, sequence=sequence, id="forged", prev=prev, hash=b"h" * 32)
    assert refused.value.diag.constraint_name == refusal


def test_the_newest_entry_has_one_successor(
    live_acme: TenantKit, run: str, app_conninfo: str
) -> None:
    with psycopg.connect(app_conninfo) as connection:
        connection.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(live_acme.id)])
        head = connection.execute(
            "SELECT head_hash FROM run_head WHERE tenant_id = %s AND run_id = 'run-1'",
            [live_acme.id],
        ).fetchone()
    assert head is not None
    assert (
        as_role(app_conninfo, live_acme, INSERT, sequence=3, id="a", prev=head[0], hash=b"h" * 32)
        == 1
    )
    with pytest.raises(errors.UniqueViolation):
        as_role(app_conninfo, live_acme, INSERT, sequence=3, id="b", prev=head[0], hash=b"i" * 32)


def test_without_a_tenant_every_read_fails_loudly(
    live_acme: TenantKit, run: str, app_conninfo: str
) -> None:
    with psycopg.connect(app_conninfo) as connection, pytest.raises(errors.UndefinedObject):
        connection.execute("SELECT count(*) FROM log_entry")
    with psycopg.connect(app_conninfo) as connection:
        connection.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(live_acme.id)])
        connection.commit()
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.execute("SELECT count(*) FROM log_entry")


def test_another_tenants_run_can_not_be_continued(
    live_acme: TenantKit, run: str, app_conninfo: str
) -> None:
    globex = make_tenant()
    with pytest.raises((errors.ForeignKeyViolation, errors.CheckViolation)):
        as_role(app_conninfo, globex, INSERT, sequence=0, id="x", prev=ZERO, hash=b"h" * 32)
    with psycopg.connect(app_conninfo) as connection:
        connection.execute("SELECT set_config('kindmem.tenant_id', %s, true)", [str(globex.id)])
        forged = {"tenant": live_acme.id, "sequence": 0, "id": "x", "prev": ZERO, "hash": b"h" * 32}
        with pytest.raises(errors.InsufficientPrivilege):  # row-level security's WITH CHECK
            connection.execute(INSERT, forged)
