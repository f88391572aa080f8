"""`backup`: the whole database and its ledgers in one file, while everything runs."""

import os
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import connection

from kindmem.backups import archive
from kindmem.backups.catalog import catalog_digests
from kindmem.backups.programs import ProgramFailed, conninfo, dump
from memory.endings import write_down
from memory.installation_keys import digest_text
from memory.instants import instant_text
from memory.ledgers import ledger_in_database, merged, read_ledger, write_ledger
from memory.management.command import OperatorCommand, Refused
from memory.tenancy import all_tenants, tenant_context

_ROLE = "kindmem_backup"


class Command(OperatorCommand):
    """Write the database, as it is at one moment, and the ledgers of holds and erasures into one file."""

    help = "Write the database, as it is at one moment, and the ledgers of holds and erasures into one file."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--out", metavar="FILE", required=True, help="the file to write")
        parser.add_argument("--force", action="store_true", help="replace the file when it exists")

    def run(self, options: dict[str, Any]) -> None:
        out = Path(options["out"]).resolve()
        if out.exists() and not options["force"]:
            raise Refused(
                f"{out} exists already. Name another file, or say --force.", code="exists"
            )
        if not out.parent.is_dir():
            raise Refused(f"There is no folder {out.parent}.", code="no-folder")
        began, manifest = time.monotonic(), _manifest()
        with archive.unfinished_dump(out) as path:
            self._dump(path)
            ledgers = _ledgers()
            size = archive.write(out, manifest, ledgers, path)
        seconds = round(time.monotonic() - began, 1)
        self.say(
            {
                "file": str(out),
                "bytes": size,
                "tenants": len(ledgers),
                "createdAt": manifest["createdAt"],
                "seconds": seconds,
            },
            f"{out}: {size} bytes, {len(ledgers)} tenants, {seconds} s.\n"
            "The keys are not in it. Keep the state folder, and a copy of its ledgers, apart from it.",
        )

    def _dump(self, path: Path) -> None:
        source = os.environ.get("DATABASE_BACKUP_URL", "")
        if not source:
            if not settings.KINDMEM_USES_EMBEDDED_DATABASE:
                raise Refused(
                    f"Name the role {_ROLE} of your PostgreSQL in DATABASE_BACKUP_URL: it reads everything and writes nothing.",
                    code="no-backup-url",
                )
            source = conninfo(connection.settings_dict, _ROLE)
        tables: set[str] = set()

        def show(table: str) -> None:
            tables.add(table)
            self.progress.show(f"{len(tables)} tables: {table}", tables=len(tables))

        try:
            dump(source, path, show)
        except ProgramFailed as error:
            raise Refused(f"pg_dump ended: {error}", code="dump-failed") from error


def _manifest() -> dict[str, Any]:
    """What a restore compares. `createdAt`: no later than the moment that the dump shows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp(), current_setting('server_version')")
        now, version = cursor.fetchone()
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY app, name")
        migrations = [f"{app}.{name}" for app, name in cursor.fetchall()]
        catalog = catalog_digests(cursor)
    return {
        "createdAt": instant_text(now),
        "product": settings.KINDMEM_VERSION,
        "postgres": version,
        "migrations": migrations,
        "catalog": catalog,
        "keys": digest_text(),
    }


def _ledgers() -> dict[str, Any]:
    """Every open tenant's ledgers; what stands outside the database is brought up to date on the way."""
    found = {}
    for tenant_id, slug in all_tenants():
        with tenant_context(tenant_id):
            ledger = ledger_in_database(tenant_id)
        if any(ledger.values()):
            write_ledger(slug, ledger)
        write_down(tenant_id, slug)
        found[slug] = merged(read_ledger(slug), ledger)
    return found
