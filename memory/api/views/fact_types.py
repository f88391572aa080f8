"""The registry of fact types over HTTP: what each says about its facts. For admins; auditors read it."""

from typing import Any

from memory.access import Principal
from memory.actions.declare_type import MOST_DAYS, Declaration, declare_type
from memory.api import parameters
from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.pagination import make_cursor, page, read_cursor
from memory.api.schemas_log import page_of
from memory.api.shapes import ID, INSTANT, TEXT, Shape, always, shape
from memory.queries.fact_types import DeclaredType, declared_type, declared_types
from memory.search.progress import type_progress

_TAG = "Fact types"
_DAYS = {"type": "integer", "minimum": 1, "maximum": MOST_DAYS}
_BOOLEAN = {"type": "boolean"}
_RETENTION = shape({"keepDays": _DAYS, "deleteAfterDays": _DAYS})
_SCHEMA = {"type": ["object", "boolean"], "description": "JSON Schema 2020-12 of the content."}

DECLARE_TYPE = Shape(
    shape(
        {
            "keyword": _BOOLEAN,
            "semantic": _BOOLEAN,
            "embeddingModel": ID,
            "contentSchema": _SCHEMA,
            "retention": _RETENTION,
        }
    )
)
FACT_TYPE: dict[str, Any] = {
    "type": "object",
    "required": ["type", "keyword", "semantic", "createdAt", "updatedAt", "updatedBy"],
    "properties": {
        "type": TEXT,
        "keyword": _BOOLEAN,
        "semantic": _BOOLEAN,
        "embeddingModel": TEXT,
        "contentSchema": _SCHEMA,
        "retention": {
            "type": "object",
            "properties": {"keepDays": _DAYS, "deleteAfterDays": _DAYS},
        },
        "createdAt": INSTANT,
        "updatedAt": INSTANT,
        "updatedBy": TEXT,
        "indexing": {
            "type": "object",
            "description": "While the index of the type's facts is not yet what the declaration says.",
            "required": ["toLookAt", "models"],
            "properties": {
                "toLookAt": {"type": "integer", "minimum": 0},
                "models": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["model", "indexed", "pending"],
                        "properties": {
                            "model": TEXT,
                            "indexed": {"type": "integer", "minimum": 0},
                            "pending": {"type": "integer", "minimum": 0},
                            "lastFailure": TEXT,
                        },
                    },
                },
            },
        },
    },
}
_EXAMPLE = {
    "contentSchema": {
        "type": "object",
        "required": ["seat"],
        "properties": {"seat": {"enum": ["window", "aisle"]}},
    },
    "retention": {"keepDays": 30, "deleteAfterDays": 365},
}


def _needs_registry(principal: Principal) -> None:
    principal.needs_role("admin", "owner", "auditor")


def _with_progress(principal: Principal, declared: DeclaredType) -> dict[str, Any]:
    progress = type_progress(principal.tenant_id, declared.type)
    return declared.wire() | ({} if progress is None else {"indexing": progress.wire()})


class FactTypes(ApiView):
    @operation(
        id="memory.listTypes",
        summary="List declared types",
        ability="read",
        query=(parameters.LIMIT, parameters.CURSOR),
        answers={200: page_of(FACT_TYPE)},
        errors=("bad-input", "unknown-field", "permission-denied"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        _needs_registry(call.principal)
        limit = call.query["limit"]
        position = read_cursor(call.principal, "listTypes", {}, call.query["cursor"])
        found = declared_types(
            call.principal, after=position[0] if position else None, limit=limit + 1
        )

        def cursor_after(declared: DeclaredType) -> str:
            return make_cursor(call.principal, "listTypes", {}, [declared.type])

        return Answer(200, page(found, limit, render=DeclaredType.wire, next_cursor=cursor_after))


class FactType(ApiView):
    @operation(
        id="memory.getType",
        summary="Read a declared type",
        description=(
            "A type that nobody declared has both searches on, the default model, no schema and no window. `indexing` says how "
            "far a change of its searches or its model is; until it is gone both models answer."
        ),
        ability="read",
        answers={200: FACT_TYPE},
        errors=("permission-denied", "type-not-found"),
        tag=_TAG,
    )
    def get(self, call: Call) -> Answer:
        _needs_registry(call.principal)
        declared = declared_type(call.principal, call.path["type"])
        return Answer(200, _with_progress(call.principal, declared))

    @operation(
        id="memory.declareType",
        summary="Declare a type",
        description="Replaces the declaration as a whole, but for a `retention` that is left out: it stays, `{}` takes it away. "
        "The content schema takes no remote $ref and bounded patterns.",
        ability="write",
        body=DECLARE_TYPE,
        matters=always,
        answers={200: FACT_TYPE},
        errors=("bad-input", "unknown-field", "permission-denied", "embedding-model-unknown"),
        example=_EXAMPLE,
        tag=_TAG,
    )
    def put(self, call: Call) -> Answer:
        body = call.body
        said = body.get("retention")
        declared = declare_type(
            principal=call.principal,
            type=call.path["type"],
            declaration=Declaration(
                keyword=body.get("keyword", True),
                semantic=body.get("semantic", True),
                embedding_model=body.get("embeddingModel"),
                content_schema=body.get("contentSchema"),
                windows=None
                if said is None
                else (said.get("keepDays"), said.get("deleteAfterDays")),
            ),
        )
        return Answer(200, _with_progress(call.principal, declared))
