"""Legal holds over HTTP. Admins place and read them; releasing takes two signed-in admins, and no API key takes part."""

from datetime import UTC, datetime, timedelta
from typing import Any

from memory.actions.place_hold import place_hold
from memory.actions.release_hold import approve_release, request_release, withdraw_release
from memory.actions.review_hold import review_hold
from memory.api import parameters
from memory.api.authentication import proved_at
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, array_of, shape
from memory.errors import PermissionDenied
from memory.holds import (
    MOST_NAMED,
    REVIEW_AFTER_DAYS,
    Hold,
    HoldScope,
    find_hold,
    list_holds,
)
from memory.instants import day, instant
from memory.queries.hold_impact import count_named

TAG = "Legal holds"
_DAY = {"type": "string", "format": "date"}
_COUNT = {"type": "integer", "minimum": 0}
_IDS = array_of(ID, most=MOST_NAMED)
_SCOPE = shape(
    {
        "subjects": _IDS,
        "types": _IDS,
        "runs": _IDS,
        "from": INSTANT,
        "until": INSTANT,
        "facts": _IDS,
        "records": _IDS,
        "futureItems": {"type": "boolean"},
    }
)
_REASON = {"type": "string", "minLength": 1, "maxLength": 2000}
PLACE_HOLD = Shape(
    shape(
        {
            "matter": {"type": "string", "minLength": 1, "maxLength": 200},
            "reason": _REASON,
            "scope": _SCOPE,
            "reviewOn": _DAY,
        },
        required=("matter", "reason", "scope"),
    )
)
PREVIEW_HOLD = Shape(shape({"scope": _SCOPE}, required=("scope",)))
REVIEW_HOLD = Shape(shape({"reviewOn": _DAY}, required=("reviewOn",)))
REQUEST_RELEASE = Shape(shape({"reason": _REASON}, required=("reason",)))
HOLD: dict[str, Any] = {
    "type": "object",
    "required": ["id", "matter", "reason", "scope", "status", "placedBy", "placedAt", "reviewOn"],
    "properties": {
        "id": ID,
        "matter": TEXT,
        "reason": TEXT,
        "scope": {"type": "object"},
        "status": {"enum": ["active", "release-requested", "released"]},
        "placedBy": TEXT,
        "placedAt": INSTANT,
        "reviewOn": _DAY,
        "facts": _COUNT,
        "records": _COUNT,
        "refusals": _COUNT,
        "release": {"type": "object"},
        "releasedAt": INSTANT,
        "releasedBecause": TEXT,
        "takingIn": {"const": True},
    },
}
_EXAMPLE = {
    "matter": "Ann v. Acme",
    "reason": "Pending litigation",
    "scope": {"subjects": ["ann"], "futureItems": True},
}
_RELEASE_ERRORS = ("hold-not-found", "permission-denied", "release-refused")
_STATUS = parameters.choice(
    "status",
    ("active", "release-requested", "released"),
    "Only those; active is every one not released.",
)


def _scope_of(said: dict[str, Any]) -> HoldScope:
    def time(name: str) -> datetime | None:
        return instant(said[name]) if name in said else None

    def ids(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(said.get(name, ())))

    return HoldScope(
        subject_ids=ids("subjects"),
        fact_types=ids("types"),
        run_ids=ids("runs"),
        written_from=time("from"),
        written_until=time("until"),
        fact_ids=ids("facts"),
        record_ids=ids("records"),
        covers_future=said.get("futureItems", False),
    )


def _reauthenticated_at(call: Call) -> datetime | None:
    """When the browser session last proved who it is; sign-in keeps that in the session."""
    if call.principal.kind != "member":
        raise PermissionDenied(needs="a signed-in admin")
    at = proved_at(call.request)
    return None if at is None else datetime.fromtimestamp(at, UTC)


class LegalHolds(ApiView):
    @operation(
        id="memory.listHolds",
        summary="List legal holds (admin)",
        ability="read",
        query=(_STATUS, parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(HOLD)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit, status = call.query["limit"], call.query["status"]
        filters = {"status": status}
        position = read_cursor(call.principal, "listHolds", filters, call.query["cursor"])
        found = list_holds(
            call.principal.tenant_id,
            is_released=None if status is None else status == "released",
            is_requested=status == "release-requested",
            after=(position[0], position[1]) if position else None,
            limit=limit + 1,
        )

        def cursor_after(hold: Hold) -> str:
            return make_cursor(call.principal, "listHolds", filters, [hold.placed_at, hold.id])

        return Answer(200, page(found, limit, render=Hold.wire, next_cursor=cursor_after))

    @operation(
        id="memory.placeHold",
        summary="Place a legal hold (admin)",
        description=(
            "At once. Each list of the scope that is given narrows it; `facts` and `records` name items one by one; "
            "`futureItems` catches what is written later. A hold that names more than 2,000 facts and memories protects them all "
            "at once and counts them afterwards: `takingIn` until it is done. `reviewOn` defaults to half a year from now."
        ),
        ability="write",
        body=PLACE_HOLD,
        answers={201: HOLD},
        changes=True,
        errors=("bad-input", "unknown-field", "permission-denied"),
        example=_EXAMPLE,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        said = call.body
        hold = place_hold(
            principal=call.principal,
            matter=said["matter"],
            reason=said["reason"],
            scope=_scope_of(said["scope"]),
            review_on=day(said["reviewOn"])
            if "reviewOn" in said
            else (datetime.now(UTC) + timedelta(days=REVIEW_AFTER_DAYS)).date(),
        )
        return Answer(201, hold.wire())


class LegalHoldPreview(ApiView):
    @operation(
        id="memory.previewHold",
        summary="What a hold with this scope would keep now (admin)",
        ability="read",
        body=PREVIEW_HOLD,
        answers={
            200: {
                "type": "object",
                "required": ["facts", "records"],
                "properties": {"facts": _COUNT, "records": _COUNT},
            }
        },
        errors=("bad-input", "unknown-field", "permission-denied"),
        example={"scope": _EXAMPLE["scope"]},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner")
        facts, records = count_named(call.principal.tenant_id, _scope_of(call.body["scope"]))
        return Answer(200, {"facts": facts, "records": records})


class LegalHold(ApiView):
    @operation(
        id="memory.getHold",
        summary="Read a legal hold (admin)",
        ability="read",
        answers={200: HOLD},
        errors=("hold-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        return Answer(200, find_hold(call.principal.tenant_id, call.path["hold_id"]).wire())


class LegalHoldReview(ApiView):
    @operation(
        id="memory.reviewHold",
        summary="Say that a hold is still needed, until the next review (admin)",
        ability="write",
        body=REVIEW_HOLD,
        answers={200: HOLD},
        changes=True,
        errors=("bad-input", "unknown-field", *_RELEASE_ERRORS),
        example={"reviewOn": "2090-01-01"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        hold = review_hold(
            principal=call.principal,
            hold_id=call.path["hold_id"],
            review_on=day(call.body["reviewOn"]),
        )
        return Answer(200, hold.wire())


class LegalHoldRequest(ApiView):
    @operation(
        id="memory.requestHoldRelease",
        summary="Ask for a hold's release (signed-in admin)",
        description="A second signed-in admin approves. Both have just re-authenticated; no API key takes part.",
        ability="write",
        body=REQUEST_RELEASE,
        answers={200: HOLD},
        changes=True,
        errors=("bad-input", "unknown-field", *_RELEASE_ERRORS),
        example={"reason": "The case is closed"},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        hold = request_release(
            principal=call.principal,
            hold_id=call.path["hold_id"],
            reason=call.body["reason"],
            reauthenticated_at=_reauthenticated_at(call),
        )
        return Answer(200, hold.wire())


class LegalHoldApproval(ApiView):
    @operation(
        id="memory.approveHoldRelease",
        summary="Approve a hold's release (another signed-in admin)",
        ability="write",
        answers={200: HOLD},
        changes=True,
        errors=_RELEASE_ERRORS,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        hold = approve_release(
            principal=call.principal,
            hold_id=call.path["hold_id"],
            reauthenticated_at=_reauthenticated_at(call),
        )
        return Answer(200, hold.wire())


class LegalHoldWithdrawal(ApiView):
    @operation(
        id="memory.withdrawHoldRelease",
        summary="End a request for release; the hold stays (signed-in admin)",
        ability="write",
        answers={200: HOLD},
        changes=True,
        errors=_RELEASE_ERRORS,
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        hold = withdraw_release(principal=call.principal, hold_id=call.path["hold_id"])
        return Answer(200, hold.wire())
