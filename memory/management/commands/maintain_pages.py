"""`maintain_pages`: clear the disk pages of what erasures deleted, now."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.maintain_pages import REWRITE_MAX_BYTES, NotOwner, maintain_pages
from memory.management.command import OperatorCommand, Refused


class Command(OperatorCommand):
    """Rewrite tables and their indexes, so that their files hold nothing that was deleted."""

    help = "Rewrite tables and their indexes, so that their files hold nothing that was deleted."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="write large tables anew too: each is locked for as long as that takes",
        )

    def run(self, options: dict[str, Any]) -> None:
        def show(table: str, done: int, all: int) -> None:
            self.progress.show(f"{done} of {all} tables: {table}", done=done, tables=all)

        most = (1 << 62) if options["all"] else REWRITE_MAX_BYTES
        try:
            done = maintain_pages(rewrite_max_bytes=most, on_table=show)
        except NotOwner:
            raise Refused(
                "DATABASE_OWNER_URL does not name the role that owns the tables.", code="no-owner"
            ) from None
        self.say(
            {"rewritten": done.rewritten, "vacuumed": done.vacuumed},
            f"{done.rewritten} tables written anew, {done.vacuumed} larger ones freed."
            + (" Run it with --all to write those anew too." if done.vacuumed else ""),
        )
