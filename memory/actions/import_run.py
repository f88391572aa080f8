"""Import one run: append what is not there yet, batch by batch, with the facts that its tool results make.

A batch is one transaction: its facts are written by whoever appends their causes, so an import that was cut short goes on where
it stopped, and a second one adds nothing, whatever became of entries and facts since. Facts come before the append, since the
run's head is locked last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_log_entries, prepared_for
from memory.actions.supersede_fact import supersede_fact
from memory.actions.write_fact import write_fact
from memory.errors import EntryIdTaken, FactNotFound, IdTaken, LegalHoldActive, RunDiffers
from memory.fact_shape import FactChange, FactDraft, Subject
from memory.holds import note_refusal
from memory.importers.openai_runs import RunDraft, RunFact
from memory.log_entry import NewEntry, PreparedEntry, StoredEntry, same_content
from memory.log_pseudonyms import writer_to_store
from memory.queries.run_log import ENTRY_COLUMNS, stored_entry
from memory.tenancy import tenant_context

MOST_ENTRIES = 500
MOST_CHARACTERS = 4 << 20
MOST_FACTS = 25
"""Of one batch: what is well done within a statement's five seconds and a transaction's thirty."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """Counts. `present`: entries that were there; `facts`: revisions written."""

    added: int
    present: int
    facts: int


def import_run(*, principal: Principal, run: RunDraft, dry_run: bool = False) -> ImportedRun:
    """What was added, or would be with `dry_run`. Opens its own transactions.

    Raises RunDiffers when the stored run begins otherwise, RunReserved, PermissionDenied, and what writing facts raises; batches
    before the refused one stay.
    """
    present = added = facts = 0
    for first, prepared in _batches(principal, run):
        for is_last_try in (False, True):
            try:
                there, written = _import_batch(principal, run, first, prepared, dry_run)
            except (EntryIdTaken, IdTaken):
                # Another import of the same run came first, and is there now; or the id is somebody else's.
                if is_last_try:
                    raise
            else:
                break
        present += there
        added += len(prepared) - there
        facts += written
    return ImportedRun(added=added, present=present, facts=facts)


def _batches(principal: Principal, run: RunDraft) -> Iterator[tuple[int, list[PreparedEntry]]]:
    """The entries, canonical, in batches; with the place of each batch's first."""
    causes = {fact.cause for fact in run.facts}
    batch: list[PreparedEntry] = []
    first = characters = facts = 0
    for place, entry in enumerate(run.entries):
        one = prepared_for(principal, run.run_id, entry)
        size = len(one.payload_text or "")
        is_full = len(batch) == MOST_ENTRIES or facts + (place in causes) > MOST_FACTS
        if batch and (is_full or characters + size > MOST_CHARACTERS):
            yield first, batch
            batch, first, characters, facts = [], place, 0, 0
        batch.append(one)
        characters += size
        facts += place in causes
    yield first, batch


def _import_batch(
    principal: Principal,
    run: RunDraft,
    first: int,
    prepared: Sequence[PreparedEntry],
    dry_run: bool,
) -> tuple[int, int]:
    """(entries that were there, facts written) of one batch."""
    with tenant_context(principal.tenant_id):
        stored = _stored(principal, run.run_id, first, len(prepared))
        for place, (one, wanted) in enumerate(zip(stored, prepared, strict=False), start=first):
            if one.sequence != place or not _is_same(
                one, wanted, run.run_id, writer_to_store(principal)
            ):
                raise RunDiffers(run_id=run.run_id, sequence=place)
        missing: list[NewEntry] = [one.entry for one in prepared[len(stored) :]]
        begin, end = first + len(stored), first + len(prepared)
        new = [fact for fact in run.facts if begin <= fact.cause < end]
        if missing and not dry_run:
            held: list[str] = []
            written = sum(_write(principal, run, fact, held) for fact in new)
            append_log_entries(principal=principal, run_id=run.run_id, entries=missing)
            if held:
                note_refusal(principal, "import", held)
            return len(stored), written
    return len(stored), len(new)


def _stored(principal: Principal, run_id: str, first: int, count: int) -> list[StoredEntry]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {ENTRY_COLUMNS} FROM log_entry e "
            "WHERE e.tenant_id = %(tenant)s::uuid AND e.run_id = %(run)s::text "
            "AND e.sequence >= %(first)s::bigint AND e.sequence < %(end)s::bigint ORDER BY e.sequence",
            {"tenant": principal.tenant_id, "run": run_id, "first": first, "end": first + count},
        )
        return [stored_entry(row) for row in cursor.fetchall()]


def _is_same(stored: StoredEntry, wanted: PreparedEntry, run_id: str, writer: str) -> bool:
    """Whether the stored entry is the wanted one; of an erased payload the hash speaks, where it can."""
    if stored.payload_erased_at is None:
        return stored.id == wanted.entry.id and same_content(stored, wanted, run_id, writer)
    return (
        stored.id == wanted.entry.id
        and stored.kind == wanted.entry.kind
        and stored.scope_text == wanted.scope_text
        # A salted hash went with its salt.
        and (stored.hash_version != 1 or stored.content_hash == wanted.content_hash)
    )


def _write(principal: Principal, run: RunDraft, fact: RunFact, held: list[str]) -> int:
    """Write the fact's first revision, or its next; 0 when somebody deleted the fact since its first, or a hold keeps it:
    that one joins `held`.
    """
    subjects = (Subject("external", fact.fact.customer),)
    causes = (run.entries[fact.cause].id,)
    if fact.revision == 1:
        draft = FactDraft(
            type=fact.fact.type,
            scope=run.scope,
            id=fact.id,
            content=fact.fact.content,
            causes=causes,
            subjects=subjects,
        )
        write_fact(principal=principal, draft=draft)
        return 1
    try:
        supersede_fact(
            principal=principal,
            fact_id=fact.id,
            change=FactChange(content=fact.fact.content, causes=causes, subjects=subjects),
        )
    except FactNotFound:
        return 0
    except LegalHoldActive as error:
        held += error.ids
        return 0
    return 1
