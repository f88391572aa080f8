"""`import_records`: memories from a file, each line by itself, in a transaction of its own.

Tombstones come first, so that nothing in the file brings one back; what was forgotten or retired is obeyed last, since the
records of the file are older than that. Run again after whatever stopped it: what is there is not added twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.import_record import Imported, import_record, keep_bygones
from memory.errors import BadInput, DomainError, IdReused, LegalHoldActive, LineageForgotten
from memory.holds import note_refusal
from memory.importers.json_file import Item, items
from memory.importers.record_lines import ENDED, RecordLine, record_line
from memory.management.command import OperatorCommand, Refused, operator, sentence
from memory.tenancy import tenant_context

MOST_TOLD = 100
"""Refusals that are told one by one; the rest is counted."""


class Command(OperatorCommand):
    """Import memory records."""

    help = (
        "Import memories: JSONL or a JSON list, gzipped or not, of memory records, of a subject's export, of mem0's "
        "export or of LangGraph store items. Safe to run again: what is there is not added twice."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("file", type=Path, help="JSONL or a JSON list; .gz is fine")
        parser.add_argument("--dry-run", action="store_true", help="say what would be added")
        parser.add_argument(
            "--subject-at",
            type=int,
            metavar="N",
            help="which name of a LangGraph namespace is the person's: from 0, or negative from the end",
        )

    def run(self, options: dict[str, Any]) -> None:
        path: Path = options["file"]
        work = _Work(operator(options["slug"]), options["subject_at"], options["dry_run"])
        broken = None
        try:
            for step in (work.take_tombstone, work.take, work.take_bygones):
                broken = self._go_through(path, step, work)
        except KeyboardInterrupt:
            broken = "Stopped. Run it again to go on from here."
        work.end()
        self.progress.end()
        self.say(work.answer(broken), work.text(options["slug"]))
        for line in work.told:
            self.stderr.write(line)
        if broken or work.counts["refused"]:
            raise Refused(broken or f"{work.counts['refused']} items were refused; see above.")

    def _go_through(self, path: Path, step: Callable[[Item], None], work: "_Work") -> str | None:
        """Take each item; what is wrong with the file itself, once everything before that was taken."""
        try:
            for item in _each(path):
                step(item)
                self.progress.show(work.progress(), **work.counts)
        except BadInput as error:
            return f"{path}: {sentence(error, of_file=True)}"
        return None


def _each(path: Path) -> Iterator[Item]:
    """The file's items; an answer of mem0's that wraps its memories in `results` is each of them."""
    for item in items(path):
        inside = item.value.get("results") if isinstance(item.value, dict) else None
        if not isinstance(inside, list):
            yield item
            continue
        for number, value in enumerate(inside):
            yield replace(item, place=f"{item.place}, result {number}", value=value)


class _Work:
    """What was done so far."""

    def __init__(self, principal: Principal, subject_at: int | None, dry_run: bool) -> None:
        self._principal, self._subject_at, self._dry_run = principal, subject_at, dry_run
        names = ("items", "added", "present", "pending", "held", "skipped", "refused")
        self.counts = dict.fromkeys(names, 0)
        self.told: list[str] = []
        self._refusals: list[dict[str, Any]] = []
        self._tombstones: set[str] = set()

    def take_tombstone(self, item: Item) -> None:
        line = self._line(item)
        if line is not None and line.status == "deleted":
            self._tombstones.add(str(line.draft.id))
            self._import(item, line)

    def take(self, item: Item) -> None:
        """Import a record that is no tombstone, or keep why not."""
        try:
            if item.issues:
                raise BadInput(issues=list(item.issues))
            line = record_line(item.value, subject_at=self._subject_at)
        except DomainError as error:
            self.counts["items"] += 1
            self._refuse(item, error)
            return
        if line is None:
            self.counts["items"] += 1
            self.counts["skipped"] += 1
        elif line.status != "deleted":
            self._import(item, line)

    def take_bygones(self, item: Item) -> None:
        line = None if self._dry_run else self._line(item)
        if line is not None and line.status in ENDED:
            with tenant_context(self._principal.tenant_id):
                keep_bygones(principal=self._principal, line=line)

    def end(self) -> None:
        """Log the import as a whole."""
        if self._dry_run or not self.counts["added"]:
            return
        with tenant_context(self._principal.tenant_id):
            append_governance(
                principal=self._principal, payload={"type": "records.imported", **self.counts}
            )

    def _line(self, item: Item) -> RecordLine | None:
        """The line, when it is one; `take` says why not."""
        try:
            return None if item.issues else record_line(item.value, subject_at=self._subject_at)
        except DomainError:
            return None

    def _import(self, item: Item, line: RecordLine) -> None:
        self.counts["items"] += 1
        try:
            self._check_against_the_file(line)
            with transaction.atomic():
                with tenant_context(self._principal.tenant_id):
                    done = import_record(principal=self._principal, line=line)
                if self._dry_run:
                    transaction.set_rollback(True)
        except DomainError as error:
            self._refuse(item, error)
            return
        self._count(done)

    def _check_against_the_file(self, line: RecordLine) -> None:
        """What the tombstones of the file forbid, also in a dry run, which keeps none."""
        if line.status == "deleted":
            return
        if line.draft.id in self._tombstones:
            raise IdReused(id=str(line.draft.id))
        if gone := sorted(self._tombstones.intersection(line.draft.derived_from)):
            raise LineageForgotten(ids=gone)

    def _count(self, done: Imported) -> None:
        self.counts[done.outcome] += 1
        self.counts["held"] += done.held

    def _refuse(self, item: Item, error: DomainError) -> None:
        self.counts["refused"] += 1
        if isinstance(error, LegalHoldActive) and not self._dry_run:
            with tenant_context(self._principal.tenant_id):
                note_refusal(self._principal, "import", error.ids)
        if len(self._refusals) < MOST_TOLD:
            details = {"issues": error.issues} if isinstance(error, BadInput) else error.details
            said = {
                "place": item.place,
                "code": error.code,
                "message": sentence(error, of_file=True),
            }
            self._refusals.append({**said, **({"details": details} if details else {})})
            self.told.append(f"Refused {item.place}: {error.code}: {sentence(error, of_file=True)}")

    def progress(self) -> str:
        done = self.counts
        return f"{done['items']} records, {done['added']} added, {done['refused']} refused …"

    def answer(self, broken: str | None) -> dict[str, Any]:
        said = {**self.counts, "dryRun": self._dry_run, "refusals": self._refusals}
        return {**said, "broken": broken} if broken else said

    def text(self, slug: str) -> str:
        done = self.counts
        verb = "Would import" if self._dry_run else "Imported"
        return (
            f"{verb} {done['added']} records into {slug}, {done['held']} of them newly held; {done['present']} were there, "
            f"{done['pending']} wait for a decision, {done['refused']} were refused."
        )
