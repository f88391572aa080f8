"""Named correction routes over HTTP: the registry, acting by one, and undoing what a receipt tells of."""

from typing import Any

from memory.actions.act_on_route import Form, act_on_route
from memory.actions.register_route import change_route, register_route
from memory.actions.undo_receipt import undo_receipt
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.schemas_records import (
    ACTED,
    CHANGE_ROUTE,
    PENDING,
    REGISTER_ROUTE,
    ROUTE,
    ROUTE_FORM,
    UNDONE,
)
from memory.api.views.record_acts import read_correction, read_evidence, widens
from memory.api.views.records import answer_with, pending
from memory.instants import day
from memory.records.routes import Route, list_routes

TAG = "Correction routes"
_ADMIN_ERRORS = ("bad-input", "unknown-field", "permission-denied")


class Routes(ApiView):
    @operation(
        id="memory.listRoutes",
        summary="The correction routes: built-in ones and the tenant's own",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(ROUTE)},
        errors=("bad-input", "unknown-field"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listRoutes", {}, call.query["cursor"])
        found = list_routes(
            call.principal, after=position[0] if position else None, limit=limit + 1
        )

        def cursor_after(route: Route) -> str:
            return make_cursor(call.principal, "listRoutes", {}, [route.name])

        return Answer(200, page(found, limit, render=Route.wire, next_cursor=cursor_after))

    @operation(
        id="memory.registerRoute",
        summary="Register a correction route (admin)",
        description="With `url_template`, an https URL that holds `{record_id}`, it opens an outside page, else ours.",
        ability="write",
        body=REGISTER_ROUTE,
        answers={201: ROUTE},
        changes=True,
        errors=("route-exists", *_ADMIN_ERRORS),
        example={
            "name": "ask-finance",
            "label": "Ask finance",
            "url_template": "https://finance.example.com/fix?record={record_id}",
        },
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        fields = dict(call.body)
        route = register_route(principal=call.principal, name=fields.pop("name"), fields=fields)
        return Answer(201, route.wire())


class OneRoute(ApiView):
    @operation(
        id="memory.changeRoute",
        summary="Change a correction route, or configure one that a record named (admin)",
        ability="write",
        body=CHANGE_ROUTE,
        answers={200: ROUTE},
        changes=True,
        errors=("route-not-found", *_ADMIN_ERRORS),
        tag=TAG,
    )
    def patch(self, call: Call) -> Answer:
        route = change_route(
            principal=call.principal, name=call.path["name"], fields=dict(call.body)
        )
        return Answer(200, route.wire())


def read_form(call: Call) -> Form:
    """The filled-in form. Raises BadInput for a context that is none."""
    body: dict[str, Any] = dict(call.body)
    fields = {name: value for name, value in body.items() if name not in ("reason", "evidence")}
    if "since" in fields:
        fields["since"] = day(fields["since"])
    correction = None
    if "new_value" in body:
        correction = read_correction(
            call.principal,
            body,
            record_id=call.path["record_id"],
            route=call.path["name"],
        )
    return Form(
        fields=fields,
        reason=body.get("reason"),
        evidence=read_evidence(body),
        correction=correction,
    )


class RouteOfRecord(ApiView):
    @operation(
        id="memory.actOnRoute",
        summary="Act on a record by a named correction route",
        description=(
            "confirm {broaden_to?} · fix-value {new_value, context, broaden?, expect?} · out-of-date {since?} · wrong-person · "
            "dispute {statement} · forget · never-infer {prefix?}; all take reason and evidence. "
            "Other routes take the form of fix-value."
        ),
        ability="write",
        body=ROUTE_FORM,
        matters=widens,
        answers={200: ACTED, 202: PENDING},
        changes=True,
        errors=(
            "record-not-found",
            "route-not-found",
            "route-external",
            "record-changed",
            "already-disputed",
            "instance-unnamed",
            "policy-not-correctable",
            "invariant-violated",
            "evidence-unresolved",
            "legal-hold",
            "content-too-large",
            *_ADMIN_ERRORS,
        ),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        acted = act_on_route(
            principal=call.principal,
            record_id=call.path["record_id"],
            name=call.path["name"],
            form=read_form(call),
        )
        if acted.pending_id is not None:
            return pending(acted.pending_id)
        receipt: Any = None
        if acted.forgotten is not None:
            receipt = acted.forgotten.wire()
        elif acted.receipt is not None:
            receipt = acted.receipt.wire(acted.values)
        if acted.record is None:
            return Answer(200, {"receipt": receipt})
        body = {"record": acted.record.wire(), "receipt": receipt}
        return answer_with(call, 200, acted.record, body)


class Undo(ApiView):
    @operation(
        id="memory.undoReceipt",
        summary="Undo what a receipt tells of, until its deadline",
        description="What was taken away comes back as new records with new ids; tombstones stay.",
        ability="write",
        answers={200: UNDONE, 202: PENDING},
        changes=True,
        errors=("receipt-not-found", "undo-closed", "permission-denied", "legal-hold"),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        undone = undo_receipt(principal=call.principal, number=call.path["number"])
        if undone.receipt is None:
            return pending(str(undone.pending_id))
        body = {
            "records": [one.wire() for one in undone.records],
            "receipt": undone.receipt.wire(undone.values),
        }
        if len(undone.records) != 1:
            # Withheld as soon as one of them ends: what ends withholds the receipts of acts on it, too.
            return Answer(200, body, item_ref=f"receipt:{undone.receipt.number}")
        return answer_with(call, 200, undone.records[0], body)
