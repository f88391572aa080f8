"""What waits for a person's decision, over HTTP: list, read with its effect, approve, reject, decide many. For admins."""

from typing import Any

from memory.actions.approve_review import REVIEWERS, approve_review
from memory.actions.decide_reviews import MOST_AT_ONCE, Named, decide_reviews
from memory.actions.reject_review import reject_review
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, array_of, shape
from memory.queries.review_effect import effect_of
from memory.queries.reviews import (
    KINDS,
    REASONS,
    ReviewFilters,
    ReviewItem,
    find_review,
    list_reviews,
)

TAG = "Reviews"
_EXPECT = {"type": "string", "maxLength": 256}
_FIELDS: dict[str, Any] = {
    "kind": {"enum": list(KINDS)},
    "id": ID,
    "reason": {"enum": list(REASONS)},
    "waitingSince": INSTANT,
    "writtenBy": TEXT,
    "role": TEXT,
    "name": TEXT,
    "subject": {"type": "object"},
    "appliesTo": {"type": "object"},
    "act": TEXT,
    "recordId": TEXT,
    "factId": TEXT,
    "says": {},
    "scope": {"type": "object"},
    "evidenceRef": TEXT,
    "statement": TEXT,
}
_REQUIRED = ["kind", "id", "reason", "waitingSince", "writtenBy", "role"]
REVIEW: dict[str, Any] = {"type": "object", "required": _REQUIRED, "properties": _FIELDS}
REVIEW_WITH_EFFECT: dict[str, Any] = {
    "type": "object",
    "required": [*_REQUIRED, "effect"],
    "properties": {
        **_FIELDS,
        "effect": {
            "type": "object",
            "required": ["ends", "expect"],
            "properties": {
                "ends": {"type": "array", "items": {"type": "object"}},
                "expect": _EXPECT,
                "record": {"type": "object"},
                "fact": {"type": "object"},
            },
        },
    },
}
DECIDED: dict[str, Any] = {
    "type": "object",
    "required": ["kind", "id", "outcome"],
    "properties": {
        "kind": {"enum": list(KINDS)},
        "id": ID,
        "outcome": {"enum": ["approved", "rejected", "refused"]},
        "error": {"type": "object"},
    },
}
APPROVE = Shape(shape({"expect": _EXPECT}))
DECIDE = Shape(
    shape(
        {
            "decision": {"enum": ["approve", "reject"]},
            "items": array_of(
                shape(
                    {"kind": {"enum": list(KINDS)}, "id": ID, "expect": _EXPECT},
                    required=("kind", "id"),
                ),
                most=MOST_AT_ONCE,
            ),
        },
        required=("decision", "items"),
    )
)
_ERRORS = (
    *("review-not-found", "permission-denied", "record-changed", "fact-changed", "legal-hold"),
    *("invariant-violated", "policy-not-correctable", "forgotten", "retired", "inference-refused"),
    *("lineage-forgotten", "record-not-found", "fact-not-found", "undo-closed", "id-reused"),
)


class Reviews(ApiView):
    @operation(
        id="memory.listReviews",
        summary="What waits for a decision, oldest first (admin)",
        description=(
            "`record` and `fact`: proposed by an agent. `act`: asked for by an agent without a person's word. `withdrawal` and "
            "`dispute`: what a person complained about; its id is the receipt's number."
        ),
        ability="read",
        query=(
            parameters.choice("kind", KINDS),
            parameters.choice("reason", REASONS),
            parameters.text("subjectId"),
            parameters.text("writer", "Such as `service:` and a key's prefix."),
            parameters.LIMIT,
            parameters.CURSOR,
        ),
        answers={200: page_of(REVIEW)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role(*REVIEWERS)
        query = call.query
        filters = ReviewFilters(query["kind"], query["reason"], query["subjectId"], query["writer"])
        position = read_cursor(call.principal, "listReviews", filters.wire(), query["cursor"])
        found = list_reviews(
            call.principal,
            filters,
            after=(position[0], position[1], position[2]) if position else None,
            limit=query["limit"] + 1,
        )

        def cursor_after(item: ReviewItem) -> str:
            place = [item.since, item.id, item.kind]
            return make_cursor(call.principal, "listReviews", filters.wire(), place)

        return Answer(
            200, page(found, query["limit"], render=ReviewItem.wire, next_cursor=cursor_after)
        )


class Review(ApiView):
    @operation(
        id="memory.getReview",
        summary="One thing that waits, and what approving it would change (admin)",
        description="`effect.ends`: what would be superseded. Send `effect.expect` along to decide on what was read here.",
        ability="read",
        answers={200: REVIEW_WITH_EFFECT},
        errors=("review-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role(*REVIEWERS)
        item = find_review(call.principal, call.path["kind"], call.path["review_id"])
        return Answer(200, {**item.wire(), "effect": effect_of(call.principal, item).wire()})


class ReviewApproval(ApiView):
    @operation(
        id="memory.approveReview",
        summary="Approve what waits (admin)",
        description=(
            "A proposal is used from now on, an act is done, a complaint is upheld. The rules are those of now: 409 with the "
            "difference when something else stands there than `expect` says, or when the person took it back since."
        ),
        ability="write",
        body=APPROVE,
        answers={200: DECIDED},
        changes=True,
        errors=_ERRORS,
        example={"expect": ""},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        kind, item_id = call.path["kind"], call.path["review_id"]
        approve_review(
            principal=call.principal,
            kind=kind,
            item_id=item_id,
            expect=call.body.get("expect"),
        )
        return Answer(200, {"kind": kind, "id": item_id, "outcome": "approved"})


class ReviewRejection(ApiView):
    @operation(
        id="memory.rejectReview",
        summary="Reject what waits (admin)",
        description=(
            "It ends without having been used, and no read tells so. A complaint that is rejected leaves the record in use."
        ),
        ability="write",
        answers={200: DECIDED},
        changes=True,
        errors=("review-not-found", "permission-denied", "record-changed", "legal-hold"),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        kind, item_id = call.path["kind"], call.path["review_id"]
        reject_review(principal=call.principal, kind=kind, item_id=item_id)
        return Answer(200, {"kind": kind, "id": item_id, "outcome": "rejected"})


class ReviewDecisions(ApiView):
    @operation(
        id="memory.decideReviews",
        summary="Decide many at once (admin)",
        description="Each by itself: what can't be decided comes back as `refused`, with the error it would have answered alone.",
        ability="write",
        body=DECIDE,
        answers={
            200: {
                "type": "object",
                "required": ["data"],
                "properties": {"data": {"type": "array", "items": DECIDED}},
            }
        },
        outside=True,
        changes=True,
        roles=REVIEWERS,
        errors=("permission-denied",),
        example={"decision": "reject", "items": [{"kind": "record", "id": "mr_8842"}]},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        decision = call.body["decision"]
        named = [Named(one["kind"], one["id"], one.get("expect")) for one in call.body["items"]]
        outcomes = decide_reviews(principal=call.principal, decision=decision, named=named)
        return Answer(200, {"data": [one.wire(decision) for one in outcomes]})
