"""`import_runs`: chat transcripts in the OpenAI message format become runs, and what their tools told of customers, facts.

One transcript after the other; what is refused is named with its place and stops no other. Run again after whatever stopped it:
it goes on, and adds nothing twice.
"""

import re
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.access import Principal
from memory.actions.back_fill_embeddings import back_fill_embeddings
from memory.actions.import_run import import_run
from memory.embeddings.provider import default_model, get_provider
from memory.errors import BadInput, DomainError
from memory.importers.json_file import Item, items
from memory.importers.openai_runs import run_of_transcript
from memory.management.command import OperatorCommand, Refused, operator, sentence
from memory.models.log import RESERVED_RUN_PREFIX

PREFIX_MAX = 200
MOST_TOLD = 100
"""Refusals and notes that are told one by one; the rest is counted."""
HOPELESS = 20
"""Refusals from the beginning on, without one run, after which the file is something else."""


class Command(OperatorCommand):
    """Import agent runs."""

    help = (
        "Import chat transcripts in the OpenAI message format: a JSON list or JSONL, gzipped or not, of "
        "{messages} or {traj}. Safe to run again: what is there is not added twice."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("file", type=Path, help="a JSON list or JSONL; .gz is fine")
        parser.add_argument(
            "--run-prefix",
            metavar="P",
            help="run ids are this and the item's number from 0 (default: the file's name and '-')",
        )
        parser.add_argument(
            "--project",
            metavar="ID",
            help="who has this project reads the runs (default: all of the tenant)",
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be added")

    def run(self, options: dict[str, Any]) -> None:
        path: Path = options["file"]
        principal = operator(options["slug"])
        scope = {"tenantId": principal.tenant_slug}
        if options["project"]:
            scope["projectId"] = options["project"]
        prefix = _checked(
            options["run_prefix"] if options["run_prefix"] is not None else _prefix_of(path)
        )
        work = _Work(principal, scope, prefix, options["dry_run"])
        broken = None
        try:
            for item in items(path):
                work.take(item)
                self.progress.show(work.progress(), **work.counts)
        except KeyboardInterrupt:
            broken = "Stopped. Run it again to go on from here."
        except BadInput as error:
            broken = f"{path}: {sentence(error, of_file=True)}"
        if work.counts["factsWritten"] and not options["dry_run"]:
            self._make_vectors(principal)
        self.progress.end()
        self.say(work.answer(broken), work.text(options["slug"]))
        for line in work.told:
            self.stderr.write(line)
        if broken or work.counts["refused"]:
            raise Refused(broken or f"{work.counts['refused']} items were refused; see above.")

    def _make_vectors(self, principal: Principal) -> None:
        """Make at once the vectors that the model here had no time for, so that what was imported is found by meaning."""
        model = default_model()
        if model is None or not get_provider(model).is_local:
            return
        made = 0
        while (done := back_fill_embeddings(tenant_id=principal.tenant_id)).stored:
            made += done.stored
            self.progress.show(f"{made} vectors …", vectors=made)


class _Work:
    """What was done so far."""

    def __init__(
        self, principal: Principal, scope: dict[str, str], prefix: str, dry_run: bool
    ) -> None:
        self._principal, self._scope, self._prefix, self._dry_run = (
            principal,
            scope,
            prefix,
            dry_run,
        )
        self.counts = dict.fromkeys(
            (
                "items",
                "runsAdded",
                "runsPresent",
                "entriesAdded",
                "entriesPresent",
                "factsWritten",
                "refused",
                "notes",
            ),
            0,
        )
        self.told: list[str] = []
        self._refusals: list[dict[str, Any]] = []
        self._notes: list[dict[str, Any]] = []

    def take(self, item: Item) -> None:
        """Import one item, or keep why not."""
        self.counts["items"] += 1
        try:
            if item.issues:
                raise BadInput(issues=list(item.issues))
            run = run_of_transcript(
                item.value, run_id=f"{self._prefix}{item.number}", scope=self._scope
            )
            done = import_run(principal=self._principal, run=run, dry_run=self._dry_run)
        except DomainError as error:
            self._refuse(item, error)
            return
        self.counts["runsAdded" if done.added else "runsPresent"] += 1
        self.counts["entriesAdded"] += done.added
        self.counts["entriesPresent"] += done.present
        self.counts["factsWritten"] += done.facts
        self.counts["notes"] += len(run.notes)
        for note in run.notes[: MOST_TOLD - len(self._notes)]:
            self._notes.append({"place": item.place, "message": note})
            self.told.append(f"Note on {item.place}: {note}")

    def _refuse(self, item: Item, error: DomainError) -> None:
        self.counts["refused"] += 1
        if len(self._refusals) < MOST_TOLD:
            issues = error.issues if isinstance(error, BadInput) else []
            said = {
                "place": item.place,
                "code": error.code,
                "message": sentence(error, of_file=True),
            }
            self._refusals.append({**said, "issues": issues} if issues else said)
            self.told.append(f"Refused {item.place}: {sentence(error, of_file=True)}")
        if self.counts["refused"] == self.counts["items"] == HOPELESS:
            raise BadInput.at("file", f"has no transcript among its first {HOPELESS} items")

    def progress(self) -> str:
        return f"{self.counts['items']} runs, {self.counts['entriesAdded']} entries, {self.counts['factsWritten']} facts …"

    def answer(self, broken: str | None) -> dict[str, Any]:
        said: dict[str, Any] = {**self.counts, "dryRun": self._dry_run, "refusals": self._refusals}
        said["notes"] = self._notes
        said["noteCount"] = self.counts["notes"]
        return {**said, "broken": broken} if broken else said

    def text(self, slug: str) -> str:
        done = self.counts
        verb = "Would import" if self._dry_run else "Imported"
        return (
            f"{verb} {done['runsAdded']} runs with {done['entriesAdded']} entries and {done['factsWritten']} "
            f"fact revisions into {slug}; {done['runsPresent']} runs were there, {done['refused']} items were refused."
        )


def _prefix_of(path: Path) -> str:
    """The file's name without its endings, in the characters that read well in a URL."""
    stem = path.name.split(".")[0] or "run"
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[: PREFIX_MAX - 1] + "-"


def _checked(prefix: str) -> str:
    if len(prefix) > PREFIX_MAX or not prefix.isprintable():
        raise BadInput.at("run_prefix", f"has at most {PREFIX_MAX} printable characters")
    if prefix.startswith(RESERVED_RUN_PREFIX):
        raise BadInput.at("run_prefix", f"must not begin with '{RESERVED_RUN_PREFIX}'")
    return prefix
