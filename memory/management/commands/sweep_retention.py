"""`sweep_retention`: destroy what is due now, in one tenant or in all; with `--dry-run` only count it."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.sweep_retention import SweepResult, sweep_retention
from memory.errors import DomainError
from memory.management.command import OperatorCommand, Refused, operator, sentence
from memory.tenancy import all_tenants


class Command(OperatorCommand):
    """Sweep one tenant or all."""

    help = "Destroy what is past its retention and kept by no hold. --dry-run counts the same and destroys nothing."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", nargs="?", help="one tenant; all of them without it")
        parser.add_argument("--dry-run", action="store_true", help="count, destroy nothing")
        parser.add_argument(
            "--accept-clock", action="store_true", help="the clock is right, though it jumped"
        )

    def run(self, options: dict[str, Any]) -> None:
        if options["slug"]:
            result = self._sweep(options["slug"], options)
            self.say({"tenant": options["slug"], **result.wire()}, _line(options["slug"], result))
            return
        answers: list[dict[str, Any]] = []
        lines: list[str] = []
        has_failed = False
        for _, slug in all_tenants():
            try:
                result = self._sweep(slug, options)
            except (DomainError, Refused) as error:
                has_failed = True
                said = sentence(error) if isinstance(error, DomainError) else str(error)
                answers.append({"tenant": slug, "error": {"code": error.code, "message": said}})
                lines.append(f"{slug}: {said}")
            else:
                answers.append({"tenant": slug, **result.wire()})
                lines.append(_line(slug, result))
        self.say({"tenants": answers}, "\n".join(lines) or "There is no tenant yet.")
        if has_failed:
            sys.exit(1)

    def _sweep(self, slug: str, options: dict[str, Any]) -> SweepResult:
        def show(result: SweepResult) -> None:
            self.progress.show(
                f"{slug}: {result.destroyed} destroyed",
                destroyed=result.destroyed,
                batches=result.batches,
            )

        return sweep_retention(
            principal=operator(slug),
            dry_run=options["dry_run"],
            accept_clock=options["accept_clock"],
            on_batch=show,
        )


def _line(slug: str, result: SweepResult) -> str:
    by_rule = ", ".join(f"{count} {rule}" for rule, count in sorted(result.counts.items()))
    held = f"; {result.held} kept by a hold" if result.held else ""
    held += f"; {result.erasing} left to an erasure" if result.erasing else ""
    did = "would be destroyed" if result.is_dry_run else "destroyed"
    return f"{slug}: {result.due} facts {did}" + (f" ({by_rule})" if by_rule else "") + held + "."
