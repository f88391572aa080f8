"""The API description: OpenAPI 3.1 from the operations' own declarations, with the error envelope, security and examples."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from memory.api.errors import STATUS
from memory.api.parameters import Parameter
from memory.api.shapes import Schema

KEY_IS_KEPT = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Kept 24 hours: the same key and body replay the first answer.",
)
KEY_IS_IGNORED = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Taken and ignored: each call is answered anew.",
)

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details", "requestId"],
            "properties": {
                "code": {"type": "string", "enum": sorted(STATUS)},
                "message": {"type": "string"},
                "details": {"type": "object"},
                "requestId": {"type": "string"},
            },
        }
    },
}
_ALWAYS = (
    "auth-missing",
    "auth-expired",
    "auth-revoked",
    "bad-input",
    "unavailable",
    "rate-limited",
)


def only_api(endpoints: list[Any]) -> list[Any]:
    """Keep the routes whose views are declared operations. Each entry: (path, path regex, method, view)."""
    return [
        entry
        for entry in endpoints
        if hasattr(getattr(entry[3].cls, entry[2].lower(), None), "operation")
    ]


def finish(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put in what every operation shares: security, the error envelope per status, examples, path parameter types."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = _ERROR
    components["securitySchemes"] = {
        "apiKey": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key: 'Authorization: Bearer <api key>'.",
        }
    }
    result["security"] = [{"apiKey": []}]
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            _finish_operation(operation)
    return result


def _finish_operation(operation: dict[str, Any]) -> None:
    operation.pop("security", None)
    responses = operation["responses"]
    by_status: dict[str, list[str]] = {}
    for code in sorted({*operation.get("x-error-codes", ()), *_ALWAYS}):
        by_status.setdefault(str(STATUS[code]), []).append(code)
    for status, codes in by_status.items():
        responses[status] = {
            "description": ", ".join(codes),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
    example = operation.pop("x-example", None)
    if example is not None and "requestBody" in operation:
        for media in operation["requestBody"]["content"].values():
            media["example"] = example
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            parameter["schema"] = {"type": "string", "minLength": 1, "maxLength": 256}


def openapi_parameter(parameter: Parameter) -> OpenApiParameter:
    return OpenApiParameter(
        parameter.name,
        dict(parameter.schema),
        OpenApiParameter.QUERY,
        description=parameter.description,
    )


def openapi_answer(schema: Schema | str) -> Any:
    return {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else dict(schema)
