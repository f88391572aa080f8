"""`verify_log`: recompute a run's chain and seals, or every run's, and say what state it is in. Each state has an exit code."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.verify_tenant import TenantReport, verify_tenant
from memory.errors import LogNotFound
from memory.integrity.receipts import Receipt, read_receipts
from memory.integrity.rows import Progress
from memory.integrity.states import EXIT_CODES, ChainReport, FirstBad, State, Tampering
from memory.management.command import OperatorCommand, Refused, operator

_WORDS = {
    State.VERIFIED: "intact",
    State.TAMPERED: "BROKEN: something was altered",
    State.NOT_COMPLETE: "a part of the run, not all of it",
    State.LINKAGE_ONLY: "linked, but an erased payload can no longer be checked",
    State.ERASED_ATTESTED: "intact, with attested erasures",
    State.VERIFIED_UNSEALED_TAIL: "intact, not yet sealed",
    State.UNANCHORED: "intact, not anchored",
    State.NOTHING_TO_VERIFY: "there was no entry",
}


class Command(OperatorCommand):
    """Verify the log of a tenant."""

    help = "Verify a run of a tenant, or all of them. The exit code tells the state: " + ", ".join(
        f"{code} {state.value}" for state, code in EXIT_CODES.items()
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--run", help="one run only")
        parser.add_argument("--sql", action="store_true", help="use the verifier written in SQL")
        parser.add_argument(
            "--receipts", metavar="FILE", help="JSON lines of append answers that clients kept"
        )

    def run(self, options: dict[str, Any]) -> None:
        self._run = ""
        principal = operator(options["slug"])
        try:
            found = verify_tenant(
                principal=principal,
                run_id=options["run"],
                in_sql=options["sql"],
                receipts=_receipts(options["receipts"], options["slug"]),
                on_run=self._on_run,
                on_batch=self._on_batch,
            )
        except LogNotFound:
            raise Refused(
                f"There is no run {options['run']} in {options['slug']}.", code="log-not-found"
            ) from None
        answer: dict[str, Any] = {
            "state": found.state.value,
            "runs": [report.as_wire() for report in found.reports],
        }
        lines = [*map(_line, found.reports), _summary(options["slug"], options["run"], found)]
        if found.log_bad is not None:
            answer["firstBad"] = found.log_bad.as_wire()
            lines.append(_bad(found.log_bad, f"{found.log_bad.run_id} {found.log_bad.sequence}"))
        if (step := _next_step(found)) is not None:
            answer["nextStep"] = step
            lines.append(f"next: {step}")
        self.say(answer, "\n".join(lines))
        if code := EXIT_CODES[found.state]:
            self.progress.end()
            sys.exit(code)

    def _on_run(self, number: int, count: int, run_id: str) -> None:
        self._run = f"run {number} of {count}"
        self.progress.show(self._run, run=number, of=count)

    def _on_batch(self, progress: Progress) -> None:
        self.progress.show(f"{self._run}, entry {progress.sequence}", entry=progress.sequence)


def _receipts(path: str | None, slug: str) -> list[Receipt]:
    if path is None:
        return []
    try:
        with Path(path).open(encoding="utf-8") as file:
            return list(read_receipts(file, slug))
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: it is not UTF-8 text", code="bad-input") from error
    except ValueError as error:
        raise Refused(f"{path}: {error}", code="bad-input") from error


def _said(state: State) -> str:
    """The state by its name, which the documents explain, and in words."""
    return f"{state.value} ({_WORDS[state]})"


def _summary(slug: str, run_id: str | None, found: TenantReport) -> str:
    """The last line: what it speaks of, and how much of it was read."""
    counts = [report.entries for report in found.reports]
    if run_id is not None:
        return f"{slug}, this run alone: {_said(found.state)}, {sum(counts)} entries"
    return f"{slug}: {_said(found.state)}, {len(counts)} runs, {sum(counts)} entries"


def _line(report: ChainReport) -> str:
    line = f"{report.run_id}: {_said(report.state)}, {report.entries} entries"
    if report.unsealed:
        line += f", {report.unsealed} not sealed"
    if report.erased:
        line += f", {report.erased} erased"
    if report.checkpoint is not None:
        line += f", checkpoint {report.checkpoint['size']}"
    if report.first_bad is not None:
        bad = report.first_bad
        place = (
            f"sequence {bad.sequence}"
            if bad.run_id == report.run_id
            else f"{bad.run_id} {bad.sequence}"
        )
        line += "\n" + _bad(bad, place)
    if (unprotected := report.unprotected) is not None:
        columns = ", ".join(unprotected["columns"])
        line += (
            f"\n  unprotected: {columns} of {unprotected['entries']} erased entries of version 1"
        )
    return line


def _bad(bad: FirstBad, place: str) -> str:
    return f"  first bad: {place} ({bad.tampering.value})\n  expected {bad.expected}\n  found    {bad.found}"


def _next_step(found: TenantReport) -> str | None:
    """What the operator does about the log of seals, where it is what is wrong."""
    bad = found.log_bad
    if bad is not None and bad.tampering is Tampering.ANCHOR:
        return "if you restored an older backup: restore_epoch. If you did not, the database was rewritten: keep a copy of it."
    if bad is not None:
        return "keep a copy of the database; a leaf that is not signed yet goes with seal --drop-unsigned, else compare a backup."
    if found.unanchored_from is not None:
        return "the anchor file is lost, or an older one: put the copy of it back, or begin a new epoch with restore_epoch."
    return None
