"""A backup and its restore: the same schema and rows; erased stays erased, held stays held, and nothing runs before that."""

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.management.base import CommandError
from django.db import connection, connections

from kindmem.backups import archive, restoring
from kindmem.backups.catalog import catalog_of
from kindmem.postgres.bootstrap import bootstrap
from memory.access import system_principal
from memory.actions.run_erasure import run_due_erasures
from memory.actions.seal_tenant import seal_tenant
from memory.housekeeping import keep_ledgers
from memory.installation_keys import OtherKeys, claim_keys
from memory.ledgers import endings_path, ledger_path, read_ledger
from memory.models import LegalHold
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.commands.commands import answered, told
from tests.conftest import test_cluster
from tests.lifecycle.facts import age, count, write
from tests.lifecycle.test_erasure import ANN, CANARY, plant, rows_that_say
from tests.lifecycle.test_holds import place
from tests.lifecycle.test_sweep import sweep
from tests.pages.people import person
from tests.records.builders import body_of, refusal

Switch = Callable[[], Any]


@pytest.fixture
def apart(live_db: None, tmp_path: Path, own_state: Path, settings: Any) -> None:
    """Ledgers, anchors and a state folder of this test alone: an unfinished restore is told there."""
    settings.KINDMEM_LEDGER_DIR = tmp_path / "ledgers"
    settings.KINDMEM_ANCHOR_DIR = tmp_path / "anchors"


@pytest.fixture
def elsewhere(apart: None) -> Iterator[Callable[[], Any]]:
    """`with elsewhere():` everything goes to an empty database, prepared as for a first start."""
    cluster, made = test_cluster(), f"restored_{os.getpid()}"
    bootstrap(cluster.url(), made)

    @contextmanager
    def switched() -> Iterator[None]:
        before = connection.settings_dict["NAME"]
        _use(made)
        try:
            yield
        finally:
            _use(before)

    yield switched
    with psycopg.connect(cluster.url(), autocommit=True) as superuser:
        superuser.execute(f"DROP DATABASE {made} WITH (FORCE)")


def _use(name: str) -> None:
    for alias in ("default", "owner"):
        connections[alias].close()
        connections[alias].settings_dict["NAME"] = name
        django_settings.DATABASES[alias]["NAME"] = name


def backed_up(tmp_path: Path, name: str = "one.backup") -> Path:
    out = tmp_path / name
    answered("backup", "--out", str(out))
    return out


def erase_ann(kit: TenantKit) -> None:
    asked = {"subject": {"kind": "user", "id": ANN}}
    body_of(kit.client("admin").post("/v1/memory/erasures", asked), 202)
    run_due_erasures(system_principal(kit.id, kit.slug, id="eraser"))


def of(kit: TenantKit, answer: Any) -> Any:
    [mine] = [one for one in answer["tenants"] if one["tenant"] == kit.slug]
    return mine


def test_a_restored_database_has_the_same_schema_and_the_same_rows(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    app = plant(live_acme)
    with connection.cursor() as cursor:
        before = catalog_of(cursor)
    said = rows_that_say(live_acme, CANARY)
    out = backed_up(tmp_path)
    assert out.stat().st_mode & 0o777 == 0o600
    with elsewhere():
        restored = of(live_acme, answered("restore", str(out)))
        assert (restored["holds"], restored["erasures"]) == (0, 0)
        with connection.cursor() as cursor:
            after = catalog_of(cursor)
        assert {part: sorted(set(before[part]) ^ set(after[part])) for part in before} == {
            part: [] for part in before
        }
        now = rows_that_say(live_acme, CANARY)
        assert {table: now[table] for table in said} == said
        assert app.get("/v1/memory/facts").status_code == 200
        body_of(
            app.post("/v1/memory/facts", {"type": "n", "scope": {"userId": ANN}, "content": 1}), 201
        )


def test_what_was_erased_after_the_backup_is_erased_again_before_anything_is_served(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    plant(live_acme)
    out = backed_up(tmp_path)
    erase_ann(live_acme)
    keep_ledgers()
    assert ANN not in ledger_path(live_acme.slug).read_text()
    with elsewhere():
        restored = of(live_acme, answered("restore", str(out)))
        assert restored["erasures"] == 1
        assert rows_that_say(live_acme, CANARY) == {}
        assert count(live_acme, "fact") == 1


def test_what_was_erased_before_the_backup_and_came_back_since_is_left_alone(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    plant(live_acme)
    erase_ann(live_acme)
    app = live_acme.client("app", users=[ANN])
    fact = {"type": "note", "scope": {"userId": ANN}, "content": "welcome back"}
    made = body_of(app.post("/v1/memory/facts", fact), 201)["id"]
    out = backed_up(tmp_path)
    with elsewhere():
        assert of(live_acme, answered("restore", str(out)))["erasures"] == 0
        body_of(app.get(f"/v1/memory/facts/{made}"), 200)


def test_a_hold_placed_after_the_backup_holds_again_by_whom_and_since_when_it_was_placed(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    fact = write(live_acme, content="held")
    out = backed_up(tmp_path)
    hold = place(live_acme, fact_ids=(fact.id,))
    keep_ledgers()
    with elsewhere():
        restored = of(live_acme, answered("restore", str(out)))
        assert (restored["holds"], restored["releases"]) == (1, 0)
        with tenant_context(live_acme.id):
            again = LegalHold.objects.get(tenant_id=live_acme.id, id=hold.id)
            assert (again.placed_by, again.placed_at) == (hold.placed_by, hold.placed_at)
        admin = live_acme.client("admin", may=("read", "write", "tenant-wide"))
        refusal(admin.delete(f"/v1/memory/facts/{fact.id}"), 409, "legal-hold")


def test_what_was_held_before_the_backup_is_held_after_the_restore_and_no_sweep_takes_it(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    """U13."""
    write(live_acme, id="held", content="held")
    write(live_acme, id="free", content="free")
    place(live_acme, fact_ids=("held",))
    age(live_acme, "held", "free")
    out = backed_up(tmp_path)
    assert (sweep(live_acme).destroyed, count(live_acme, "fact")) == (1, 1)
    with elsewhere():
        restored = of(live_acme, answered("restore", str(out)))
        assert (restored["holds"], restored["ended"]) == (0, {"facts.destroyed": 1})
        assert count(live_acme, "fact") == 1
        swept = sweep(live_acme)
        assert (swept.held, swept.destroyed) == (1, 0)
        assert count(live_acme, "fact", "id = 'held' AND hold_count = 1") == 1


def release(kit: TenantKit, hold_id: str) -> None:
    """As two admins do it, whose roles are old enough."""
    one, other = person(kit, "admin"), person(kit, "admin")
    with tenant_context(kit.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE member SET role_granted_at = now() - interval '3 days' WHERE tenant_id = %s",
            [kit.id],
        )
    for who, act, body in (
        (one, "request-release", {"reason": "the case is closed"}),
        (other, "approve-release", {}),
    ):
        answer = who.browser.post(
            f"/v1/memory/legal-holds/{hold_id}/{act}",
            json.dumps(body),
            content_type="application/json",
            headers={"Kindmem-Tenant": kit.slug},
        )
        assert answer.status_code == 200, answer.content


def test_holds_releases_and_erasures_happen_again_in_the_order_of_time(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    """Held, released, erased; then another hold that names the same person: the erasure is not refused by it."""
    plant(live_acme)
    out = backed_up(tmp_path)
    first = place(live_acme, subject_ids=(ANN,))
    release(live_acme, str(first.id))
    erase_ann(live_acme)
    place(live_acme, subject_ids=(ANN,), covers_future=True)
    keep_ledgers()
    with elsewhere():
        restored = of(live_acme, answered("restore", str(out)))
        assert (restored["holds"], restored["releases"], restored["erasures"]) == (2, 1, 1)
        assert restored["unfinished"] == []
        assert rows_that_say(live_acme, CANARY) == {}
        with tenant_context(live_acme.id):
            holds = LegalHold.objects.filter(tenant_id=live_acme.id).order_by("placed_at")
            assert [one.released_at is None for one in holds] == [False, True]


def test_a_newer_ledger_that_was_kept_elsewhere_is_taken_too(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    plant(live_acme)
    out = backed_up(tmp_path)
    erase_ann(live_acme)
    export = live_acme.client("admin").get("/v1/memory/erasures/export").json()
    file = tmp_path / "export.json"
    file.write_text(json.dumps(export))
    for kept in (ledger_path(live_acme.slug), endings_path(live_acme.slug)):
        kept.unlink()
    with elsewhere():
        assert read_ledger(live_acme.slug)["erasures"] == []
        argument = f"{live_acme.slug}={file}"
        assert of(live_acme, answered("restore", str(out), "--ledger", argument))["erasures"] == 1
        assert rows_that_say(live_acme, CANARY) == {}


def test_a_restored_log_that_is_behind_its_anchor_goes_on_in_a_new_epoch(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    app = live_acme.client("app", users=[ANN])
    entry = {"kind": "user-message", "scope": {"userId": ANN}, "payload": "before"}
    app.post("/v1/memory/runs/r/log", entry)
    seal_tenant(tenant_id=live_acme.id, tenant_slug=live_acme.slug)
    out = backed_up(tmp_path)
    app.post("/v1/memory/runs/r/log", {**entry, "payload": "after"})
    seal_tenant(tenant_id=live_acme.id, tenant_slug=live_acme.slug)
    with elsewhere():
        assert of(live_acme, answered("restore", str(out)))["epoch"] == 1
        app.post("/v1/memory/runs/r/log", {**entry, "payload": "anew"})
        seal_tenant(tenant_id=live_acme.id, tenant_slug=live_acme.slug)
        assert "verified" in told("verify_log", live_acme.slug)


def test_a_database_that_is_not_empty_is_refused_and_left_alone(
    live_acme: TenantKit, apart: None, tmp_path: Path
) -> None:
    write(live_acme)
    out = backed_up(tmp_path)
    with pytest.raises(CommandError, match="not empty"):
        told("restore", str(out))
    assert count(live_acme, "fact") == 1
    claim_keys()


def test_a_backup_of_other_keys_is_refused(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    out = backed_up(tmp_path)
    manifest, ledgers = archive.read(out)
    other = tmp_path / "other.backup"
    with archive.unfinished_dump(other) as dump:
        archive.take_dump(out, manifest, dump)
        archive.write(other, {**manifest, "keys": "0" * 64}, ledgers, dump)
    with elsewhere(), pytest.raises(CommandError, match="does not have the keys"):
        told("restore", str(other))


@pytest.mark.parametrize("harm", ["cut", "changed", "none-of-ours"])
def test_a_damaged_file_is_refused(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path, harm: str
) -> None:
    out = backed_up(tmp_path)
    data = bytearray(out.read_bytes())
    if harm == "cut":
        data = data[: len(data) // 2]
    elif harm == "changed":
        with tarfile.open(out) as tar:
            place_of_dump = tar.getmember("database.dump").offset_data + 5000
        data[place_of_dump] ^= 1
    else:
        data = bytearray(b"not a tar at all" * 1000)
    out.write_bytes(data)
    with elsewhere():
        with pytest.raises(CommandError, match=r"damaged|not a backup"):
            told("restore", str(out))
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('public.tenant')")
            assert cursor.fetchone() == (None,)


def test_a_restore_that_was_cut_off_lets_nothing_run_and_goes_on_with_the_same_file(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(live_acme)
    out = backed_up(tmp_path)
    erase_ann(live_acme)
    keep_ledgers()
    with elsewhere():
        with monkeypatch.context() as patched:
            patched.setattr(restoring, "_bring_back", _cut_off)
            with pytest.raises(KeyboardInterrupt):
                told("restore", str(out))
        with pytest.raises(OtherKeys, match="restore is not finished"):
            claim_keys()
        with pytest.raises(CommandError, match="restore is not finished"):
            told("verify_log", live_acme.slug)
        assert of(live_acme, answered("restore", str(out)))["erasures"] == 1
        claim_keys()
        assert rows_that_say(live_acme, CANARY) == {}


def _cut_off(*_: Any) -> None:
    raise KeyboardInterrupt


def test_an_erasure_that_a_hold_stops_is_told_and_ends_with_another_code(
    live_acme: TenantKit, elsewhere: Switch, tmp_path: Path
) -> None:
    plant(live_acme)
    place(live_acme, subject_ids=(ANN,))
    out = backed_up(tmp_path)
    line = {
        "id": "0190a3a0-0000-7000-8000-000000000000",
        "selectorKind": "user",
        "selectorHmac": _digest(live_acme),
        "keyId": _key_id(),
        "requestedBy": "user:7",
        "status": "completed",
        "createdAt": "2099-01-01T00:00:00Z",
        "completedAt": "2099-01-01T00:00:00Z",
    }
    file = tmp_path / "later.json"
    file.write_text(json.dumps({"erasures": [line]}))
    with elsewhere():
        with pytest.raises(CommandError, match="1 troubles"):
            told("restore", str(out), "--ledger", f"{live_acme.slug}={file}")
        admin = live_acme.client("admin")
        assert admin.get(f"/v1/memory/erasures/{line['id']}").json()["lastError"] == "legal-hold"


def _digest(kit: TenantKit) -> str:
    from memory.erasure.ledger import selector_digest

    return selector_digest(kit.id, "user", ANN).hex()


def _key_id() -> str:
    from memory.erasure.ledger import ledger_key_id

    return ledger_key_id()


def test_ledgers_outside_the_database_never_lose_a_line(live_acme: TenantKit, apart: None) -> None:
    from memory.ledgers import write_ledger

    erase_ann(live_acme)
    keep_ledgers()
    [line] = read_ledger(live_acme.slug)["erasures"]
    assert not write_ledger(live_acme.slug, {"erasures": [], "holds": []})
    pending = {name: value for name, value in line.items() if name != "completedAt"}
    assert not write_ledger(live_acme.slug, {"erasures": [pending], "holds": []})
    assert read_ledger(live_acme.slug)["erasures"] == [line]
    assert ledger_path(live_acme.slug).stat().st_mode & 0o077 == 0


def test_a_backup_is_there_whole_or_not_at_all_and_replaces_nothing_unasked(
    live_acme: TenantKit, apart: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = backed_up(tmp_path)
    before = out.read_bytes()
    with pytest.raises(CommandError, match="exists already"):
        told("backup", "--out", str(out))
    monkeypatch.setenv("DATABASE_BACKUP_URL", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(CommandError, match="pg_dump ended"):
        told("backup", "--out", str(out), "--force")
    assert out.read_bytes() == before
    with pytest.raises(CommandError, match="no folder"):
        told("backup", "--out", str(tmp_path / "no" / "folder"))
    assert {one.name for one in tmp_path.iterdir()} <= {"one.backup", "ledgers", "anchors"}


def test_no_key_is_in_a_backup(live_acme: TenantKit, apart: None, tmp_path: Path) -> None:
    out = backed_up(tmp_path)
    state = django_settings.KINDMEM_STATE
    data = out.read_bytes()
    for secret in (state.fingerprint_key, state.sealing_key, state.secret_key.encode()):
        assert secret not in data


@pytest.mark.usefixtures("apart")
def test_ledgers_lie_in_folders_that_are_their_owners_alone(
    live_acme: TenantKit, settings: Any
) -> None:
    keep_ledgers()
    folder = ledger_path(live_acme.slug).parent
    while folder != settings.KINDMEM_LEDGER_DIR.parent:
        assert folder.stat().st_mode & 0o077 == 0, folder
        folder = folder.parent
