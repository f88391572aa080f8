"""Where policy values may come from, over HTTP. For admins."""

from memory.actions.register_policy_source import change_policy_source, register_policy_source
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.schemas_records import CHANGE_SOURCE, REGISTER_SOURCE, SOURCE
from memory.policy_sources.sources import PolicySource, list_sources

TAG = "Policy sources"
_ERRORS = ("bad-input", "unknown-field", "permission-denied", "policy-source-exists")


class PolicySources(ApiView):
    @operation(
        id="memory.listPolicySources",
        summary="Where policy values may come from (admin)",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(SOURCE)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listPolicySources", {}, call.query["cursor"])
        found = list_sources(
            call.principal.tenant_id,
            after=(position[0], position[1]) if position else None,
            limit=limit + 1,
        )

        def cursor_after(source: PolicySource) -> str:
            return make_cursor(
                call.principal, "listPolicySources", {}, [source.match, str(source.id)]
            )

        return Answer(200, page(found, limit, render=PolicySource.wire, next_cursor=cursor_after))

    @operation(
        id="memory.registerPolicySource",
        summary="Let policy values come from an address (admin)",
        description=(
            "`match`: the https URI that pointers are, or lie below. `fetch_url`: the https address that is asked at "
            "recall; nothing of the context is sent. `pointer`: a JSON Pointer into the answer."
        ),
        ability="write",
        body=REGISTER_SOURCE,
        answers={201: SOURCE},
        changes=True,
        errors=_ERRORS,
        example={
            "match": "https://policies.example.com/travel",
            "fetch_url": "https://policies.example.com/api/travel.json",
            "pointer": "/limits/meal",
        },
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        source = register_policy_source(principal=call.principal, **call.body)
        return Answer(201, source.wire())


class OnePolicySource(ApiView):
    @operation(
        id="memory.changePolicySource",
        summary="Change a policy source, or switch it off (admin)",
        ability="write",
        body=CHANGE_SOURCE,
        answers={200: SOURCE},
        changes=True,
        errors=("policy-source-not-found", *_ERRORS),
        tag=TAG,
    )
    def patch(self, call: Call) -> Answer:
        source = change_policy_source(
            principal=call.principal, source_id=call.path["source_id"], fields=dict(call.body)
        )
        return Answer(200, source.wire())
