"""`restore_epoch`: after a restore from an older backup, let a tenant's log be sealed again, under a new origin."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.restore_epoch import restore_epoch
from memory.management.command import OperatorCommand, operator


class Command(OperatorCommand):
    """Begin a new epoch."""

    help = "After a restore from an older backup: begin a new epoch of a tenant's log of seals. What was anchored before stays."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--reason", required=True, help="why; it is kept in the anchor file")

    def run(self, options: dict[str, Any]) -> None:
        epoch = restore_epoch(principal=operator(options["slug"]), reason=options["reason"])
        self.say(
            {
                "epoch": epoch.number,
                "origin": epoch.origin,
                "kept": epoch.kept,
                "lost": epoch.lost,
            },
            f"Epoch {epoch.number} has begun: {epoch.kept} leaves kept, {epoch.lost} that were anchored are gone. "
            f"Checkpoints are signed as {epoch.origin} from now on.",
        )
