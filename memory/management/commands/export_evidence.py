"""`export_evidence`: write a run's signed evidence bundle to a file."""

import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.export_evidence import export_evidence
from memory.errors import LogNotFound
from memory.management.command import OperatorCommand, Refused, operator


class Command(OperatorCommand):
    """Export a run's evidence bundle."""

    help = "Write a signed evidence bundle of a run, to be checked offline with the verify_bundle.py inside."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--run", required=True)
        parser.add_argument("--out", required=True, metavar="FILE")

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        out = Path(options["out"])
        descriptor, unfinished = tempfile.mkstemp(dir=out.parent, prefix=".unfinished-")
        try:
            with os.fdopen(descriptor, "w+b") as file:
                exported = export_evidence(principal=principal, run_id=options["run"], target=file)
            os.replace(unfinished, out)
        except LogNotFound:
            raise Refused(
                f"There is no run {options['run']} in {options['slug']}.", code="log-not-found"
            ) from None
        finally:
            Path(unfinished).unlink(missing_ok=True)
        manifest = exported.manifest
        state = manifest["verification"]["state"]
        self.say(
            {**manifest, "out": str(out)},
            f"{out}: {manifest['entries']} entries, {state}. Check it with: python3 verify_bundle.py {out}",
        )
