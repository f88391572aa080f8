"""The run log over HTTP: append, batch, read, one entry, run heads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings

from memory.access import Principal, own_scope
from memory.actions.append_log_entries import already_stored, append_log_entries
from memory.actions.reveal_entries import REVEAL_REASONS, is_masked, reveal_entries
from memory.actions.seal_receipt import seal_receipt
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import (
    APPEND,
    APPEND_BATCH,
    LOG_ENTRY,
    RUN_HEAD,
    page_of,
)
from memory.ids import new_text_id
from memory.integrity.states import State
from memory.log_entry import ABSENT, NewEntry, StoredEntry
from memory.models.log import LOG_KINDS
from memory.queries.run_log import entry_by_id, run_heads, run_log

_EXAMPLE = {
    "kind": "tool-call",
    "scope": {"projectId": "trips"},
    "actor": "agent:booker",
    "payload": {"name": "search_flights", "arguments": {"from": "LIS", "to": "BER"}},
}
_APPEND_ERRORS = (
    "bad-input",
    "unknown-field",
    "permission-denied",
    "scope-mismatch",
    "run-reserved",
    "id-taken",
)
_REVEAL = parameters.choice(
    "reveal",
    REVEAL_REASONS,
    "For auditors, to whom payloads are not shown otherwise: why. It is logged first.",
)


def _render(call: Call, entries: Sequence[StoredEntry]) -> Callable[[StoredEntry], dict[str, Any]]:
    """How these entries are shown to the caller: an auditor is shown payloads once it is logged why."""
    reason = call.query["reveal"]
    if reason is None:
        return lambda entry: entry.wire(masked=is_masked(call.principal, entry))
    reveal_entries(principal=call.principal, entries=entries, reason=reason)
    return StoredEntry.wire


def _new_entry(call: Call, body: Mapping[str, Any]) -> NewEntry:
    return NewEntry(
        kind=body["kind"],
        scope=own_scope(call.principal, body["scope"]),
        id=body.get("id") or new_text_id(),
        actor=body.get("actor"),
        payload=body.get("payload", ABSENT),
        caused_by=body.get("causedByLogId"),
    )


def _append(call: Call, bodies: list[Mapping[str, Any]]) -> list[StoredEntry]:
    entries = [_new_entry(call, body) for body in bodies]
    run_id = call.path["run_id"]
    if any("id" in body for body in bodies):
        stored = already_stored(principal=call.principal, run_id=run_id, entries=entries)
        if stored is not None:
            return stored
    return append_log_entries(principal=call.principal, run_id=run_id, entries=entries)


def _sealed(principal: Principal, entry: StoredEntry) -> dict[str, Any]:
    receipt = seal_receipt(principal, run_id=entry.run_id, sequence=entry.sequence)
    return {**entry.wire(), "receipt": receipt}


class RunLog(ApiView):
    @operation(
        id="memory.appendLog",
        summary="Append an entry to a run",
        description=(
            "The server assigns timestamp, sequence and hashes. "
            "An id that was used for the same content answers the stored entry. "
            "`wait=sealed`: the answer comes once the entry is under a signed, anchored checkpoint, with `receipt`, "
            "the proof of that; the entry stays stored also when that can't be had now (`receipt.state` is `not-sealed`)."
        ),
        ability="append",
        body=APPEND,
        query=(parameters.choice("wait", ("sealed",)),),
        answers={201: LOG_ENTRY},
        changes=True,
        errors=_APPEND_ERRORS,
        example=_EXAMPLE,
        tag="Run log",
    )
    def post(self, call: Call) -> Answer:
        (entry,) = _append(call, [call.body])
        scopes = [own_scope(call.principal, call.body["scope"])]
        answer = Answer(201, entry.wire(), item_ref=f"entry:{entry.id}", scopes=scopes)
        if call.query["wait"] is not None:
            answer.later = lambda: _sealed(call.principal, entry)
        return answer

    @operation(
        id="memory.readLog",
        summary="Read a run's entries in order",
        ability="read",
        query=(
            parameters.integer(
                "sinceSequence", "The first sequence to answer.", least=0, most=2**53 - 1
            ),
            parameters.choice("kind", LOG_KINDS),
            parameters.text("actor"),
            _REVEAL,
            parameters.LIMIT,
            parameters.CURSOR,
        ),
        answers={200: page_of(LOG_ENTRY)},
        errors=("bad-input", "unknown-field", "log-not-found"),
        tag="Run log",
    )
    def get(self, call: Call) -> Answer:
        query, run_id = call.query, call.path["run_id"]
        filters = {name: query[name] for name in ("sinceSequence", "kind", "actor")} | {
            "run": run_id
        }
        position = read_cursor(call.principal, "readLog", filters, query["cursor"])
        since = position[0] + 1 if position else query["sinceSequence"] or 0
        entries = run_log(
            call.principal,
            run_id,
            since_sequence=since,
            kind=query["kind"],
            actor=query["actor"],
            limit=query["limit"] + 1,
        )
        return Answer(
            200,
            page(
                entries,
                query["limit"],
                render=_render(call, entries[: query["limit"]]),
                next_cursor=lambda last: make_cursor(
                    call.principal, "readLog", filters, [last.sequence]
                ),
            ),
        )


class RunLogBatch(ApiView):
    @operation(
        id="memory.appendLogBatch",
        summary="Append up to 1000 entries to a run, all or none",
        ability="append",
        body=APPEND_BATCH,
        max_bytes=settings.KINDMEM_BATCH_BODY_MAX_BYTES,
        answers={
            201: {
                "type": "object",
                "required": ["data"],
                "properties": {"data": {"type": "array", "items": LOG_ENTRY}},
            }
        },
        changes=True,
        errors=_APPEND_ERRORS,
        example={"entries": [_EXAMPLE]},
        tag="Run log",
    )
    def post(self, call: Call) -> Answer:
        bodies = call.body["entries"]
        entries = _append(call, bodies)
        distinct = {
            entry.scope_text: body["scope"] for entry, body in zip(entries, bodies, strict=True)
        }
        return Answer(
            201,
            {"data": [entry.wire() for entry in entries]},
            item_ref=f"run:{call.path['run_id']}",
            scopes=[own_scope(call.principal, scope) for scope in distinct.values()],
        )


class Entry(ApiView):
    @operation(
        id="memory.getLogEntry",
        summary="One entry",
        ability="read",
        query=(_REVEAL,),
        answers={200: LOG_ENTRY},
        errors=("log-not-found",),
        tag="Run log",
    )
    def get(self, call: Call) -> Answer:
        entry = entry_by_id(call.principal, call.path["entry_id"])
        return Answer(200, _render(call, [entry])(entry))


class Runs(ApiView):
    @operation(
        id="memory.listRuns",
        summary="Runs, the latest begun first",
        ability="read",
        query=(
            parameters.choice(
                "status",
                ("unverified", *(state.value for state in State)),
                "What the last verification found.",
            ),
            parameters.moment("since", "Runs with an entry at or after this."),
            parameters.moment("until", "Runs with an entry at or before this."),
            parameters.text("actor"),
            parameters.choice("kind", LOG_KINDS),
            parameters.LIMIT,
            parameters.CURSOR,
        ),
        answers={200: page_of(RUN_HEAD)},
        errors=("bad-input", "unknown-field"),
        tag="Run log",
    )
    def get(self, call: Call) -> Answer:
        query = call.query
        filters = {name: query[name] for name in ("status", "since", "until", "actor", "kind")}
        position = read_cursor(call.principal, "listRuns", filters, query["cursor"])
        heads = run_heads(
            call.principal,
            **filters,
            after=(position[0], position[1]) if position else None,
            limit=query["limit"] + 1,
        )
        return Answer(
            200,
            page(
                heads,
                query["limit"],
                render=lambda head: head,
                next_cursor=lambda last: make_cursor(
                    call.principal, "listRuns", filters, [last["firstAt"], last["runId"]]
                ),
            ),
        )
