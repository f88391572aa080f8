"""`refresh_stale`: look after the stale views that are refreshed in the background, now, in one tenant or in all."""

import sys
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.refresh_stale import RefreshedStale, refresh_stale
from memory.errors import DomainError
from memory.management.command import OperatorCommand, Refused, operator, sentence
from memory.tenancy import all_tenants


class Command(OperatorCommand):
    """Refresh one tenant's stale views, or all tenants'."""

    help = (
        "Refresh the stale views of the strategy 'background' now, by priority, highest first. "
        "Exits with 1 when a source could not be looked at."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", nargs="?", help="one tenant; all of them without it")

    def run(self, options: dict[str, Any]) -> None:
        if options["slug"]:
            done = self._refresh(options["slug"])
            self.say({"tenant": options["slug"], **done.wire()}, _line(options["slug"], done))
            if done.failed:
                sys.exit(1)
            return
        answers: list[dict[str, Any]] = []
        lines: list[str] = []
        has_failed = False
        for _, slug in all_tenants():
            try:
                done = self._refresh(slug)
            except (DomainError, Refused) as error:
                has_failed = True
                said = sentence(error) if isinstance(error, DomainError) else str(error)
                answers.append({"tenant": slug, "error": {"code": error.code, "message": said}})
                lines.append(f"{slug}: {said}")
            else:
                has_failed = has_failed or done.failed > 0
                answers.append({"tenant": slug, **done.wire()})
                lines.append(_line(slug, done))
        self.say({"tenants": answers}, "\n".join(lines) or "There is no tenant yet.")
        if has_failed:
            sys.exit(1)

    def _refresh(self, slug: str) -> RefreshedStale:
        def show(done: RefreshedStale) -> None:
            self.progress.show(
                f"{slug}: {done.refreshed} refreshed, {done.failed} failed",
                refreshed=done.refreshed,
                failed=done.failed,
            )

        return refresh_stale(principal=operator(slug), retries_after=timedelta(0), on_batch=show)


def _line(slug: str, done: RefreshedStale) -> str:
    by_code = ", ".join(f"{count} {code}" for code, count in sorted(done.failures.items()))
    failed = f", {done.failed} failed ({by_code})" if done.failed else ""
    return f"{slug}: {done.refreshed} views refreshed{failed}."
