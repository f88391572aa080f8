"""`upgrade_database`: the embedded database to the PostgreSQL that is installed here."""

from typing import Any

from django.conf import settings

from kindmem.backups.programs import ProgramFailed
from kindmem.backups.upgrading import upgrade
from kindmem.postgres.embedded import is_embedded
from kindmem.postgres.errors import ClusterError
from memory.management.command import OperatorCommand, Refused


class Command(OperatorCommand):
    """Bring the embedded database over to the version of PostgreSQL that is installed here."""

    help = "Bring the embedded database over to the version of PostgreSQL that is installed here."
    needs_database = False

    def run(self, options: dict[str, Any]) -> None:
        if not is_embedded():
            raise Refused(
                "DATABASE_URL names a server of your own: upgrade it as its documentation says.",
                code="not-embedded",
            )
        try:
            before, after, aside = upgrade(settings.KINDMEM_DATA_DIR, self.progress.show)
        except (ClusterError, ProgramFailed) as error:
            raise Refused(str(error), code="upgrade-failed") from error
        answer = {"before": before, "after": after, "aside": str(aside) if aside else None}
        text = (
            f"The data is PostgreSQL {after}'s already."
            if aside is None
            else f"PostgreSQL {before} to {after}. The old data is in {aside}; remove it when everything works."
        )
        self.say(answer, text)
