"""Memory records over HTTP: remember, read one, list."""

from collections.abc import Sequence
from typing import Any

from memory.actions.remember import remember
from memory.actions.reveal_records import reveal_records
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_records import EXAMPLE, PENDING, RECORD, page_of
from memory.errors import BadInput
from memory.models.record import AUTHORITIES, LEVELS, SOURCE_TYPES, STATUSES, SUBJECT_TYPES
from memory.queries.records import RecordFilters, list_records, record_by_id
from memory.records.guard import replay_scope
from memory.records.record import Record
from memory.records.shape import REMEMBER, read_draft

TAG = "Memory records"


REVEAL = parameters.text(
    "reveal", "For auditors, to whom values are not shown otherwise: why. It is logged first."
)


def is_masked(call: Call, records: Sequence[Record]) -> bool:
    """Whether values are left out of this answer; where an auditor gives a reason, they are shown once that is logged."""
    if call.principal.role != "auditor":
        return False
    reason = call.query.get("reveal")
    if reason is None:
        return True
    reveal_records(principal=call.principal, records=records, reason=reason)
    return False


def answer_with(call: Call, status: int, record: Record, body: Any) -> Answer:
    """An answer that holds a record: withheld from retries when the record ends, and checked anew when replayed."""
    scope = replay_scope(call.principal, record.subject_type, record.subject_id, record.bindings)
    return Answer(status, body, item_ref=record.ref, scopes=[scope])


def pending(act_id: str) -> Answer:
    return Answer(202, {"review": "pending", "id": act_id}, item_ref=f"record:{act_id}")


def _is_widened(body: dict[str, Any]) -> bool:
    """Whether it comes as a correction that was widened."""
    return bool(body.get("correction", {}).get("broadened"))


class Records(ApiView):
    @operation(
        id="memory.remember",
        summary="Remember one thing about a subject",
        description=(
            "A record of the memory record schema; `id`, `usage`, `lifecycle.status`, `correction.superseded_by` and an empty "
            "`lineage` may be left out. 202: accepted, and waiting for a person's decision."
        ),
        ability="write",
        body=REMEMBER,
        matters=_is_widened,
        answers={201: RECORD, 202: PENDING},
        changes=True,
        errors=(
            "bad-input",
            "unknown-field",
            "permission-denied",
            "content-too-large",
            "instance-unnamed",
            "invariant-violated",
            "evidence-unresolved",
            "lineage-forgotten",
            "policy-not-correctable",
            "inference-refused",
            "id-reused",
            "record-changed",
            "forgotten",
            "retired",
            "legal-hold",
        ),
        example=EXAMPLE,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        remembered = remember(principal=call.principal, draft=read_draft(call.body))
        if remembered.record is None:
            return pending(str(remembered.pending_id))
        return answer_with(call, 201, remembered.record, remembered.record.wire())

    @operation(
        id="memory.listRecords",
        summary="List records, newest first",
        description="Active ones unless `status` says otherwise. `as_of`: what was active then.",
        ability="read",
        query=(
            parameters.choice("subject_type", SUBJECT_TYPES),
            parameters.text("subject_id"),
            parameters.text("key"),
            parameters.choice("status", STATUSES),
            parameters.choice("level", LEVELS),
            parameters.choice("authority", AUTHORITIES),
            parameters.choice("source_type", SOURCE_TYPES),
            parameters.text("q", "Active records that hold every word of it.", most=2000),
            parameters.moment("as_of"),
            REVEAL,
            parameters.LIMIT,
            parameters.CURSOR,
        ),
        answers={200: page_of(RECORD)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        query = dict(call.query)
        limit, cursor = query.pop("limit"), query.pop("cursor")
        reveal = query.pop("reveal")
        filters = RecordFilters(**query)
        if filters.q is not None and reveal is None and call.principal.role == "auditor":
            # What is found says what the values that are left out hold.
            raise BadInput.at("q", "searches values, so it needs reveal")
        if filters.as_of is not None and filters.status not in (None, "active"):
            raise BadInput.at(
                "status", "can't be asked together with as_of, which lists what was active"
            )
        if filters.q is not None and (filters.as_of or filters.status not in (None, "active")):
            raise BadInput.at("q", "searches what is active now")
        after = read_cursor(call.principal, "listRecords", filters.wire(), cursor)
        records = list_records(call.principal, filters, after=after, limit=limit + 1)
        masked = is_masked(call, records[:limit])
        return Answer(
            200,
            page(
                records,
                limit,
                render=lambda record: record.wire(masked=masked),
                next_cursor=lambda last: make_cursor(
                    call.principal, "listRecords", filters.wire(), [last.recorded_at, last.id]
                ),
            ),
        )


class OneRecord(ApiView):
    @operation(
        id="memory.getRecord",
        summary="One record, tombstones included",
        ability="read",
        query=(REVEAL,),
        answers={200: RECORD},
        errors=("record-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        record = record_by_id(call.principal, call.path["record_id"])
        return Answer(200, record.wire(masked=is_masked(call, [record])))
