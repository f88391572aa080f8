"""Record bodies for tests, and the schema that every answer is held to, formats asserted."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from jsonschema import Draft202012Validator

_SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "memory/schemas/memory-record.schema.json").read_text()
)
VALIDATOR = Draft202012Validator(_SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)


def utc_now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def a_record(value: Any = "aisle", **changes: Any) -> dict[str, Any]:
    """A record about user ann that validates once the server has filled in its part.

    Changes by name: id, subject, key, authority; source parts (source_type, evidence, observations, captured_at,
    source_of_truth); scope parts (level, bindings, valid_from, valid_until, revalidate_on); route, supersedes,
    broadened, derived_from, sensitivity, retain.
    """
    subject = changes.pop("subject", "ann")
    source: dict[str, Any] = {
        "type": changes.pop("source_type", "user_stated"),
        "evidence": changes.pop("evidence", {"kind": "message", "ref": "msg-1"}),
        "observations": changes.pop("observations", 1),
        "captured_at": changes.pop("captured_at", None) or utc_now(),
        "captured_by": "booker@2.1.0",
    }
    if "source_of_truth" in changes:
        source["source_of_truth"] = changes.pop("source_of_truth")
    body: dict[str, Any] = {
        "subject": {"type": "user", "id": subject} if isinstance(subject, str) else subject,
        "key": changes.pop("key", "travel.seat"),
        "value": value,
        "authority": changes.pop("authority", "preference"),
        "source": source,
        "scope": {
            "level": changes.pop("level", "user"),
            "bindings": changes.pop("bindings", {}),
            "valid_from": changes.pop("valid_from", None),
            "valid_until": changes.pop("valid_until", None),
            "revalidate_on": changes.pop("revalidate_on", []),
        },
        "correction": {
            "route": changes.pop("route", "fix-value"),
            "supersedes": changes.pop("supersedes", []),
            "broadened": changes.pop("broadened", False),
        },
        "lifecycle": {
            "sensitivity": changes.pop("sensitivity", "none"),
            "retain_value_after_expiry": changes.pop("retain", False),
        },
    }
    if "derived_from" in changes:
        body["lineage"] = {"derived_from": changes.pop("derived_from")}
    return {**body, **changes}


def an_inference(value: Any = "aisle", **changes: Any) -> dict[str, Any]:
    changes = {
        "source_type": "agent_inferred",
        "level": "task",
        "evidence": {"kind": "trace", "ref": "run-1"},
        **changes,
    }
    return a_record(value, **changes)


def valid(record: dict[str, Any]) -> dict[str, Any]:
    """The record, once it fits the schema with its formats."""
    VALIDATOR.validate(record)
    return record


def body_of(answer: HttpResponse, status: int) -> Any:
    """The body of an answer with this status; otherwise fails with what it said."""
    assert answer.status_code == status, (answer.status_code, answer.content.decode()[:2000])
    return json.loads(answer.content)


def refusal(answer: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The details of a refusal with this status and code."""
    error = body_of(answer, status)["error"]
    assert error["code"] == code, error
    details: dict[str, Any] = error["details"]
    return details
