"""`restore`: a backup into an empty database, with everything that was erased, ended or held since."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from kindmem.backups.archive import NoBackup
from kindmem.backups.programs import ProgramFailed
from kindmem.backups.restoring import CanNotRestore, Restored, restore
from kindmem.postgres.embedded import embedded_database
from kindmem.postgres.errors import ClusterError
from memory.ledgers import ENDINGS_SUFFIX, Ledger, merged, read_endings
from memory.management.command import OperatorCommand, Refused


class Command(OperatorCommand):
    """Restore a backup into an empty database; erased stays erased, forgotten stays forgotten, held stays held."""

    help = "Restore a backup into an empty database; what was erased, forgotten or held since is so again before it is served."
    needs_database = False

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="what `backup` wrote")
        parser.add_argument(
            "--ledger",
            action="append",
            default=[],
            metavar="TENANT=FILE",
            help="a newer ledger of a tenant than the state folder has: one of its files there, or the export of its erasures",
        )

    def run(self, options: dict[str, Any]) -> None:
        path = Path(options["file"]).resolve()
        ledgers: dict[str, Ledger] = {}
        for slug, ledger in map(_ledger, options["ledger"]):
            ledgers[slug] = merged(ledgers.get(slug, {}), ledger)
        try:
            with embedded_database(settings.KINDMEM_DATA_DIR, self._say_step):
                restored = restore(path, ledgers=ledgers, show=self.progress.show)
        except (CanNotRestore, NoBackup) as error:
            raise Refused(str(error), code=getattr(error, "code", "no-backup")) from error
        except ProgramFailed as error:
            raise Refused(
                f"pg_restore ended: {error} Nothing was changed.", code="restore-failed"
            ) from error
        except ClusterError as error:
            raise Refused(str(error), code="unavailable") from error
        self._tell(restored)

    def _say_step(self, message: str) -> None:
        self.progress.show(message)

    def _tell(self, restored: Restored) -> None:
        answer = {"tenants": restored.tenants, "troubles": restored.troubles}
        lines = [
            f"{one['tenant']}: {one['holds']} holds, {one['releases']} releases and {one['erasures']} erasures again"
            + (f"; ended again: {_counted(one['ended'])}" if one["ended"] else "")
            + (f"; its log goes on in epoch {one['epoch']}" if one["epoch"] else "")
            for one in restored.tenants
        ]
        self.say(answer, "\n".join([*lines, *restored.troubles, "Restored."]))
        if restored.troubles:
            raise Refused(
                f"Restored, with {len(restored.troubles)} troubles that somebody must look at.",
                code="troubles",
            )


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _ledger(argument: str) -> tuple[str, Ledger]:
    """A tenant's slug and what the file says. Raises Refused."""
    slug, _, name = argument.partition("=")
    if name.endswith(ENDINGS_SUFFIX):
        if not Path(name).is_file():
            raise Refused(f"{argument}: no file of ledgers is there.", code="no-ledger")
        return slug, {"endings": read_endings(Path(name))}
    try:
        said = json.loads(Path(name).read_text("utf-8"))
        erasures, holds = said.get("erasures", said.get("data", [])), said.get("holds", [])
    except (OSError, ValueError, AttributeError):
        raise Refused(f"{argument}: no file of ledgers is there.", code="no-ledger") from None
    return slug, {"erasures": erasures, "holds": holds}
