"""A backup becomes an installation again: load it, compare it, erase, end and hold again, and only then let it be served.

A file in the state folder marks a restore that is not finished; nothing else runs on the database while it is there
(memory/installation_keys.py), and the same command with the same file goes on where it was.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections

from kindmem.backups import archive, programs
from kindmem.backups.catalog import catalog_digests
from memory.access import Principal
from memory.actions.replay_ledgers import replay_ledgers
from memory.actions.restore_epoch import restore_epoch
from memory.errors import InvariantViolated, SealRefused
from memory.housekeeping import server
from memory.installation_keys import UNFINISHED_RESTORE, claim_keys, digest_text, restoring
from memory.instants import instant
from memory.ledgers import Ledger, endings_path, merged, read_endings, read_ledger
from memory.records import clock
from memory.records.sealing import destroy_overdue
from memory.tenancy import all_tenants, tenant_context

Show = Callable[..., None]


class CanNotRestore(RuntimeError):
    """Why, in a sentence; `code` for those who read JSON."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Restored:
    """What came of it, tenant by tenant. `troubles`: sentences; with any of them somebody must look."""

    tenants: list[dict[str, Any]] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def restore(path: Path, *, ledgers: dict[str, Ledger], show: Show) -> Restored:
    """Restore into the database of the settings. Raises CanNotRestore, NoBackup, ProgramFailed."""
    manifest, kept = archive.read(path)
    if manifest["keys"] != digest_text():
        raise CanNotRestore(
            f"The state folder {settings.KINDMEM_STATE.directory} does not have the keys of this backup. Name the right one in "
            "KINDMEM_STATE_DIR; nothing was changed.",
            "other-keys",
        )
    is_going_on = _is_going_on(manifest)
    if not is_going_on:
        _check_is_empty()
        _mark(manifest)
    try:
        _load(path, manifest, show, is_loaded=is_going_on)
    except BaseException:
        if not _is_loaded():
            _marker().unlink()  # one transaction: nothing of it is there
        raise
    _check_schema(manifest)
    with restoring():
        call_command("migrate", verbosity=0)
    restored = Restored()
    for tenant_id, slug in all_tenants():
        principal = server(tenant_id, slug, "restore")
        ledger = merged(
            kept.get(slug, {}),
            read_ledger(slug),
            {"endings": read_endings(endings_path(slug))},
            ledgers.get(slug, {}),
        )
        _bring_back(principal, ledger, manifest, restored, show)
    _marker().unlink()
    claim_keys()
    return restored


def _bring_back(
    principal: Principal, ledger: Ledger, manifest: dict[str, Any], restored: Restored, show: Show
) -> None:
    """One tenant: a new epoch of its log where the backup is behind its anchor, then everything that was decided since."""
    slug = principal.tenant_slug
    reason = f"Restored from the backup of {manifest['createdAt']}"
    said: dict[str, Any] = {"tenant": slug, "epoch": None}
    try:
        said["epoch"] = restore_epoch(principal=principal, reason=reason).number
    except InvariantViolated:
        pass  # the log is as far as what was anchored: the same epoch goes on
    except SealRefused as error:
        restored.troubles.append(
            f"{slug}: the log of seals is not what was anchored ({error.reason}). Run verify_log {slug}."
        )

    def step(done: int, all: int) -> None:
        show(f"{slug}: {done} of {all} decisions again", done=done, decisions=all)

    replayed = replay_ledgers(
        principal=principal, ledger=ledger, since=instant(manifest["createdAt"]), on_step=step
    )
    with tenant_context(principal.tenant_id):
        while destroy_overdue(principal.tenant_id, clock.now()):
            pass
    if replayed.still_held:
        restored.troubles.append(
            f"{slug}: {len(replayed.still_held)} things had ended since the backup, and a hold keeps them as they are."
        )
    if replayed.unfinished:
        restored.troubles.append(
            f"{slug}: {len(replayed.unfinished)} erasures wait for a hold's release."
        )
    if replayed.unmatched:
        restored.troubles.append(
            f"{slug}: {len(replayed.unmatched)} lines of the ledger were made with other keys, so nobody can be found by them."
        )
    restored.tenants.append({**said, **replayed.wire()})


def _load(path: Path, manifest: dict[str, Any], show: Show, *, is_loaded: bool) -> None:
    tables: set[str] = set()

    def told(table: str) -> None:
        tables.add(table)
        show(f"{len(tables)} tables: {table}", tables=len(tables))

    with tempfile.TemporaryDirectory(prefix="kindmem-restore-") as folder:
        dump = Path(folder) / "database.dump"
        archive.take_dump(path, manifest, dump)
        owner = connections["owner"].settings_dict
        target = programs.conninfo(owner, owner["USER"] or "kindmem_owner")
        if not is_loaded:
            programs.load(dump, target, told)
        programs.give_rights(dump, target)


def _is_loaded() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('public.tenant') IS NOT NULL")
        return bool(cursor.fetchone()[0])


def _check_schema(manifest: dict[str, Any]) -> None:
    """Raise CanNotRestore unless the schema is the one that was dumped; the marker stays, so nothing is served."""
    with connection.cursor() as cursor:
        now, then = catalog_digests(cursor), manifest["catalog"]
    differs = sorted(part for part in {*now, *then} if now.get(part) != then.get(part))
    if differs:
        raise CanNotRestore(
            f"The restored schema is not the one that was dumped ({', '.join(differs)}); the database is not served. Prepare "
            "an empty one by `python -m kindmem.postgres.bootstrap` and restore again.",
            "schema-differs",
        )


def _check_is_empty() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
        )
        [tables] = cursor.fetchone()
    if tables:
        raise CanNotRestore(
            f"The database is not empty: it has {tables} tables. A restore takes an empty one; nothing was changed.",
            "not-empty",
        )


def _marker() -> Path:
    directory: Path = settings.KINDMEM_STATE.directory
    return directory / UNFINISHED_RESTORE


def _mark(manifest: dict[str, Any]) -> None:
    _marker().write_text(json.dumps({"dumpSha256": manifest["dumpSha256"]}))


def _is_going_on(manifest: dict[str, Any]) -> bool:
    """Whether a restore of this very backup was cut off after it was loaded."""
    try:
        said = json.loads(_marker().read_text())
    except FileNotFoundError:
        return False
    if said["dumpSha256"] != manifest["dumpSha256"]:
        raise CanNotRestore(
            "Another backup is being restored into this database. Finish that with its own file.",
            "other-backup",
        )
    return _is_loaded()
