"""`export_subject`: everything about one person, written to a file that is there whole or not at all."""

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.export_subject import export_subject
from memory.management.command import OperatorCommand, operator


class Command(OperatorCommand):
    """Export what is kept about one person."""

    help = (
        "Write everything about one person as JSONL: records in every state, facts with their revisions, the ids of log "
        "entries, receipts. The file is readable by you alone; import_records takes it elsewhere."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("subject", help="the person's id")
        parser.add_argument("--out", required=True, metavar="FILE")

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        out = Path(options["out"])
        descriptor, unfinished = tempfile.mkstemp(dir=out.parent, prefix=".unfinished-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                counts = export_subject(
                    principal=principal,
                    subject_id=options["subject"],
                    target=file,
                    progress=self._show,
                )
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, out)
        finally:
            Path(unfinished).unlink(missing_ok=True)
        told = {
            "records": counts["record"],
            "facts": counts["fact"],
            "logEntries": counts["log-entry"],
            "receipts": counts["receipt"],
        }
        self.say(
            {**told, "out": str(out)},
            f"{out}: {told['records']} records, {told['facts']} facts, {told['logEntries']} log entries, "
            f"{told['receipts']} receipts.",
        )

    def _show(self, counts: Counter[str]) -> None:
        self.progress.show(f"{counts.total()} lines …", lines=counts.total())
