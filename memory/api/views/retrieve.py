"""Retrieval over HTTP."""

from memory.api.operation import Answer, ApiView, Call, operation
from memory.api.schemas_facts import FACT, PARTIAL_SCOPE
from memory.api.shapes import ID, TEXT, Shape, shape
from memory.queries.retrieve import DEFAULT_LIMIT, MODES, MOST_RESULTS, Retrieval
from memory.refresh.on_read import retrieved_on_read

RETRIEVE = Shape(
    shape(
        {
            "mode": {"enum": list(MODES)},
            "query": {"type": "string"},
            "type": ID,
            "scope": PARTIAL_SCOPE.schema,
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_RESULTS,
                "default": DEFAULT_LIMIT,
            },
            "embeddingModel": ID,
        },
        required=("mode",),
    )
)
RETRIEVED = {
    "type": "object",
    "required": ["results", "meta"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["fact"],
                "properties": {
                    "fact": FACT,
                    "score": {"type": "number"},
                    "alike": {"type": "integer", "minimum": 1},
                },
            },
        },
        "meta": {
            "type": "object",
            "required": ["searchMode", "exhaustive", "candidates"],
            "properties": {
                "searchMode": TEXT,
                "exhaustive": {"type": "boolean"},
                "candidates": {"type": "integer", "minimum": 0},
                "sampled": {"type": "integer", "minimum": 1},
                "collapsed": {"type": "integer", "minimum": 1},
                "modelsUnavailable": {"type": "array", "items": TEXT},
            },
        },
    },
}


class Retrieve(ApiView):
    @operation(
        id="memory.retrieve",
        summary="Search facts, or list them newest first",
        description=(
            "Over the facts that the caller may read. `keyword`: any word matches, ranked by BM25; `semantic`: by meaning, the "
            "score is a cosine; `both`: the two fused by rank. `meta` says how it was searched (`searchMode`), whether anything "
            "can be missing (`exhaustive`) and among how many facts (`candidates`); `sampled`: from how many facts the "
            "statistics that rank words were taken, where not from all. Facts that say the same about the same take one place: "
            "the most trusted, then newest of them is answered; `alike` counts the others, `collapsed` all of them together. "
            "Found cached views that are stale and refreshed on read "
            "are refreshed before they are answered, as on any read; their scores are of the content that was searched."
        ),
        ability="read",
        body=RETRIEVE,
        answers={200: RETRIEVED},
        ignores_key=True,
        outside=True,
        errors=(
            "bad-input",
            "unknown-field",
            "permission-denied",
            "scope-mismatch",
            "semantic-unavailable",
            "embedding-model-unknown",
            "unavailable",
        ),
        example={
            "mode": "both",
            "query": "Which seat does she like?",
            "scope": {"projectId": "trips"},
        },
        tag="Facts",
    )
    def post(self, call: Call) -> Answer:
        body = call.body
        asked = Retrieval(
            mode=body["mode"],
            query=body.get("query"),
            type=body.get("type"),
            scope=body.get("scope", {}),
            limit=int(body.get("limit", DEFAULT_LIMIT)),
            embedding_model=body.get("embeddingModel"),
        )
        found = retrieved_on_read(call.principal, asked)
        results = [
            {
                "fact": fact.wire(),
                **({"score": score} if score is not None else {}),
                **({"alike": found.alike[fact.id]} if fact.id in found.alike else {}),
            }
            for fact, score in found.results
        ]
        return Answer(200, {"results": results, "meta": dict(found.meta)})
