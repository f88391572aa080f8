"""API keys over HTTP: list, make, rotate, revoke. For admins.

A token is in one answer only: no retry and no reading shows it again.
"""

from typing import Any

from memory.access import ABILITIES, Quota
from memory.actions.create_api_key import MOST_DAYS, ROLES, NewKey, create_api_key
from memory.actions.revoke_api_key import revoke_api_key
from memory.actions.rotate_key import MOST_OVERLAP_HOURS, rotate_key
from memory.actions.set_key_quota import set_key_quota
from memory.api import idempotency, parameters
from memory.api.json_text import dumps
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, always, array_of, shape
from memory.queries.api_keys import ENDED, STATUSES, ApiKeyView, find_api_key, list_api_keys

TAG = "Keys"
_MOST_IDS = 1000
_IDS = array_of(ID, most=_MOST_IDS)
_STATUS = parameters.choice(
    "status", (*STATUSES, ENDED), "Only those; `ended`: expired or revoked."
)
CREATE = Shape(
    shape(
        {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            "role": {"enum": list(ROLES)},
            "grants": shape(
                {
                    "all": {"type": "boolean"},
                    **dict.fromkeys(
                        ("projects", "orgs", "users", "participants", "threads", "onBehalfOf"), _IDS
                    ),
                }
            ),
            "abilities": array_of({"enum": list(ABILITIES)}, most=len(ABILITIES), least=1),
            "expiresDays": {"type": "integer", "minimum": 1, "maximum": MOST_DAYS},
        },
        required=("name", "role"),
    )
)
ROTATE = Shape(
    shape({"overlapHours": {"type": "integer", "minimum": 0, "maximum": MOST_OVERLAP_HOURS}})
)
KEY: dict[str, Any] = {
    "type": "object",
    "required": [
        *("prefix", "name", "role", "status", "grants"),
        *("abilities", "createdAt", "createdBy", "expiresAt"),
    ],
    "properties": {
        "prefix": TEXT,
        "name": TEXT,
        "role": {"enum": list(ROLES)},
        "status": {"enum": list(STATUSES)},
        "grants": {"type": "object"},
        "abilities": {"type": "array", "items": TEXT},
        "createdAt": INSTANT,
        "createdBy": TEXT,
        "expiresAt": INSTANT,
        "revokedAt": INSTANT,
        "lastUsedAt": INSTANT,
        "quota": {"type": "object"},
    },
}
NEW_KEY: dict[str, Any] = {
    "type": "object",
    "required": ["key"],
    "properties": {
        "key": KEY,
        "token": {**TEXT, "description": "In the first answer only; a retry is answered without."},
        "replaces": {**TEXT, "description": "The prefix of the key that was rotated."},
    },
}
_BOUND = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
QUOTA = Shape(
    shape(
        {
            "writes": _BOUND,
            "bytes": {**_BOUND, "maximum": 2**53 - 1},
            "subjects": _BOUND,
            "windowSeconds": {**_BOUND, "maximum": 31 * 86_400},
        }
    )
)
_ERRORS = ("bad-input", "unknown-field", "permission-denied")


def _shown_once(call: Call, made: NewKey, **more: Any) -> Answer:
    """The answer with the token; what is kept for retries has none."""
    told = {"key": find_api_key(call.principal.tenant_id, made.prefix).wire(), **more}
    kept = Answer(201, told)
    parameters = call.keep_parameters(kept, dumps(told))
    if parameters is not None:
        idempotency.keep(parameters)
    return Answer(201, {**told, "token": made.token}, kept=True)


class Keys(ApiView):
    @operation(
        id="memory.listKeys",
        summary="List API keys (admin)",
        ability="read",
        query=(_STATUS, parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(KEY)},
        errors=_ERRORS,
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        limit, filters = call.query["limit"], {"status": call.query["status"]}
        position = read_cursor(call.principal, "listKeys", filters, call.query["cursor"])
        found = list_api_keys(
            call.principal.tenant_id,
            status=filters["status"],
            after=position[0] if position else None,
            limit=limit + 1,
        )

        def cursor_after(key: ApiKeyView) -> str:
            return make_cursor(call.principal, "listKeys", filters, [str(key.id)])

        return Answer(200, page(found, limit, render=ApiKeyView.wire, next_cursor=cursor_after))

    @operation(
        id="memory.createKey",
        summary="Make an API key (admin; an admin's key: owner)",
        description=(
            "The `token` is in this answer and nowhere else: it is not kept, so a retry with the same Idempotency-Key answers "
            "the same key without it. Whoever lost it rotates the key. Without `abilities` the role's defaults. A key makes "
            "none that may do more than itself."
        ),
        ability="write",
        matters=always,
        body=CREATE,
        answers={201: NEW_KEY},
        changes=True,
        errors=_ERRORS,
        example={
            "name": "booker",
            "role": "agent",
            "grants": {"projects": ["trips"]},
            "abilities": ["read", "append"],
            "expiresDays": 90,
        },
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        said = call.body
        grants = said.get("grants", {})
        made = create_api_key(
            principal=call.principal,
            name=said["name"],
            role=said["role"],
            everything=grants.get("all", False),
            projects=grants.get("projects", ()),
            orgs=grants.get("orgs", ()),
            users=grants.get("users", ()),
            participants=grants.get("participants", ()),
            threads=grants.get("threads", ()),
            on_behalf_of=grants.get("onBehalfOf", ()),
            abilities=said.get("abilities"),
            expires_days=said.get("expiresDays", 90),
        )
        return _shown_once(call, made)


class Key(ApiView):
    @operation(
        id="memory.getKey",
        summary="Read an API key (admin)",
        description="By its prefix: the ten characters after `kmk_`. Never its token.",
        ability="read",
        answers={200: KEY},
        errors=("key-not-found", "permission-denied"),
        tag=TAG,
    )
    def get(self, call: Call) -> Answer:
        call.principal.needs_role("admin", "owner", "auditor")
        return Answer(200, find_api_key(call.principal.tenant_id, call.path["prefix"]).wire())


class KeyRotation(ApiView):
    @operation(
        id="memory.rotateKey",
        summary="Replace an API key by a new one with the same grants (admin)",
        description=(
            "Both work for `overlapHours` (24 unless said, 0: the old one ends at once), so that whoever holds the old token "
            "can change it without a pause. A leaked key is revoked instead. The `token` is shown as in making a key."
        ),
        ability="write",
        matters=always,
        body=ROTATE,
        answers={201: NEW_KEY},
        changes=True,
        errors=("key-not-found", "invariant-violated", *_ERRORS),
        example={"overlapHours": 24},
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        prefix = call.path["prefix"]
        made = rotate_key(
            principal=call.principal,
            prefix=prefix,
            overlap_hours=call.body.get("overlapHours", 24),
        )
        return _shown_once(call, made, replaces=prefix)


class KeyRevocation(ApiView):
    @operation(
        id="memory.revokeKey",
        summary="Revoke an API key (admin)",
        description="Its next request is refused, for good.",
        ability="write",
        matters=always,
        answers={200: KEY},
        changes=True,
        errors=("key-not-found", "permission-denied"),
        tag=TAG,
    )
    def post(self, call: Call) -> Answer:
        prefix = call.path["prefix"]
        revoke_api_key(principal=call.principal, prefix=prefix)
        return Answer(200, find_api_key(call.principal.tenant_id, prefix).wire())


class KeyQuota(ApiView):
    @operation(
        id="memory.setKeyQuota",
        summary="Bound how much a key may write (admin)",
        description=(
            "In each window of `windowSeconds` (an hour unless said): writes, bytes of their bodies, and distinct subjects "
            "that they name. What is left out has no bound. Beyond it a write is 429 `rate-limited` with `Retry-After`. Reads "
            "and log appends are not counted."
        ),
        ability="write",
        matters=always,
        body=QUOTA,
        answers={200: KEY},
        errors=("key-not-found", *_ERRORS),
        example={"writes": 1000, "subjects": 50, "windowSeconds": 3600},
        tag=TAG,
    )
    def put(self, call: Call) -> Answer:
        prefix, said = call.path["prefix"], call.body
        quota = Quota(
            said.get("writes"),
            said.get("bytes"),
            said.get("subjects"),
            said.get("windowSeconds", 3600),
        )
        set_key_quota(principal=call.principal, prefix=prefix, quota=quota)
        return Answer(200, find_api_key(call.principal.tenant_id, prefix).wire())
