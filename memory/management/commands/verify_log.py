"""`verify_log`: recompute a run's chain, or every run's, and say what state it is in. Each state has its own exit code."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from memory.access import Principal
from memory.actions.verify_run import verify_run
from memory.errors import LogNotFound
from memory.integrity.states import EXIT_CODES, ChainReport, State, overall
from memory.management.command import OperatorCommand, Refused, operator
from memory.queries.run_log import run_heads
from memory.tenancy import tenant_context

_WORDS = {
    State.VERIFIED: "intact",
    State.TAMPERED: "BROKEN",
    State.NOT_COMPLETE: "not complete",
    State.LINKAGE_ONLY: "linked, but an erased payload can no longer be checked",
    State.ERASED_ATTESTED: "intact, with attested erasures",
    State.VERIFIED_UNSEALED_TAIL: "intact, not yet sealed",
    State.UNANCHORED: "intact, not anchored",
    State.NOTHING_TO_VERIFY: "nothing to verify",
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

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        runs = [options["run"]] if options["run"] else _all_runs(principal)
        reports: list[ChainReport] = []
        for number, run_id in enumerate(runs, start=1):
            self.progress.show(f"run {number} of {len(runs)}", run=number, of=len(runs))
            with tenant_context(principal.tenant_id):
                try:
                    reports.append(
                        verify_run(principal=principal, run_id=run_id, in_sql=options["sql"])
                    )
                except LogNotFound:
                    raise Refused(
                        f"There is no run {run_id} in {options['slug']}.", code="log-not-found"
                    ) from None
        state = overall(report.state for report in reports)
        answer = {"state": state.value, "runs": [report.as_wire() for report in reports]}
        self.say(answer, "\n".join([*map(_line, reports), f"{options['slug']}: {_WORDS[state]}"]))
        if code := EXIT_CODES[state]:
            self.progress.end()
            sys.exit(code)


def _all_runs(principal: Principal) -> list[str]:
    """Every run, the server's own last, since verifying appends to it."""
    runs: list[str] = []
    after: tuple[str, str] | None = None
    while True:
        with tenant_context(principal.tenant_id):
            heads = run_heads(principal, after=after, limit=200)
        if not heads:
            return sorted(runs, key=lambda run: run.startswith("kindmem."))
        runs += [head["runId"] for head in heads]
        after = (heads[-1]["firstAt"], heads[-1]["runId"])


def _line(report: ChainReport) -> str:
    line = f"{report.run_id}: {_WORDS[report.state]}, {report.entries} entries"
    if report.first_bad is not None:
        bad = report.first_bad
        line += (
            f"\n  first bad: sequence {bad.sequence} ({bad.tampering.value})"
            f"\n  expected {bad.expected}\n  found    {bad.found}"
        )
    return line
