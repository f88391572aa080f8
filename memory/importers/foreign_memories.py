"""Memories as mem0 and LangGraph stores export them, as records of the memory record schema. The mapping is in docs/import.md.

Both keep what a model made of a conversation. That is an inference, seen once, that nobody confirmed: it is kept at level `task`,
and recall asks before it is used. Nobody's word is made out of it.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from memory.errors import BadInput
from memory.instants import instant, instant_text

_NOT_PLAIN = re.compile(r"[^a-z0-9_]+")
_AGENT = re.compile(r"[A-Za-z0-9._-]{1,200}")


def record_of_foreign(item: Mapping[str, Any], subject_at: int | None) -> dict[str, Any] | None:
    """The record in a memory of mem0's or an item of a LangGraph store; None for what is neither. Raises BadInput."""
    if "memory" in item and "subject" not in item:
        return _of_mem0(item)
    if "namespace" in item and "key" in item and "subject" not in item:
        return _of_langgraph(item, subject_at)
    return None


def _of_mem0(item: Mapping[str, Any]) -> dict[str, Any]:
    given = _text(item, "id")
    user = item.get("user_id")
    if not isinstance(user, str) or not user:
        raise BadInput.at("/user_id", "must name the person: a memory is about somebody")
    run, agent = item.get("run_id"), item.get("agent_id")
    maker = agent if isinstance(agent, str) and _AGENT.fullmatch(agent) else "agent"
    ends = item.get("expiration_date")
    return _inference(
        id=f"mem0:{given}",
        user=user,
        key=_key("mem0", [given]),
        value=_text(item, "memory"),
        captured_at=_captured(item),
        captured_by=f"{maker}@mem0",
        bindings={"run_id": run} if isinstance(run, str) and run else {},
        valid_until=ends[:10] if isinstance(ends, str) else None,
    )


def _of_langgraph(item: Mapping[str, Any], subject_at: int | None) -> dict[str, Any]:
    namespace = item["namespace"]
    if not isinstance(namespace, list) or not all(
        isinstance(one, str) and one for one in namespace
    ):
        raise BadInput.at("/namespace", "must be a list of names")
    if subject_at is None:
        raise BadInput.at("/namespace", "needs --subject-at N: which of its names is the person's")
    if not -len(namespace) <= subject_at < len(namespace):
        raise BadInput.at("/namespace", f"has no name at {subject_at}")
    user = namespace[subject_at]
    place = subject_at % len(namespace)
    others = [*namespace[:place], *namespace[place + 1 :]]
    key = _text(item, "key")
    if item.get("value") is None:
        raise BadInput.at("/value", "must be there")
    digest = sha256("\x1f".join([*namespace, key]).encode()).hexdigest()
    return _inference(
        id=f"langgraph:{digest[:32]}",
        user=user,
        key=_key("langgraph", [*others, key]),
        value=item["value"],
        captured_at=_captured(item),
        captured_by="agent@langgraph",
        bindings={},
        valid_until=None,
    )


def _inference(
    *,
    id: str,
    user: str,
    key: str,
    value: Any,
    captured_at: str,
    captured_by: str,
    bindings: dict[str, Any],
    valid_until: str | None,
) -> dict[str, Any]:
    return {
        "id": id,
        "subject": {"type": "user", "id": user},
        "key": key,
        "value": value,
        "authority": "fact",
        "source": {
            "type": "agent_inferred",
            "evidence": {"kind": "record", "ref": id},
            "observations": 1,
            "captured_at": captured_at,
            "captured_by": captured_by,
        },
        "scope": {
            "level": "task",
            "bindings": bindings,
            "valid_from": None,
            "valid_until": valid_until,
            "revalidate_on": [],
        },
        "correction": {"route": "fix-value", "supersedes": [], "broadened": False},
        "lifecycle": {"sensitivity": "personal", "retain_value_after_expiry": False},
    }


def _text(item: Mapping[str, Any], name: str) -> str:
    found = item.get(name)
    if not isinstance(found, str) or not found:
        raise BadInput.at(f"/{name}", "must be a text of at least one character")
    return found


def _captured(item: Mapping[str, Any]) -> str:
    """When it was last written. What is wrong is said of the member that the time was taken from."""
    name = "updated_at" if item.get("updated_at") else "created_at"
    text = item.get(name)
    try:
        return instant_text(instant(text if isinstance(text, str) else ""))
    except ValueError as error:
        raise BadInput.at(f"/{name}", str(error)) from None


def _key(first: str, names: Sequence[str]) -> str:
    """A dotted key of the names: what is no letter, digit or `_` becomes `_`, and a digest tells it from what reads alike."""
    parts = []
    for name in names:
        plain = _NOT_PLAIN.sub("_", name.lower())[:48]
        parts.append(plain if plain == name else f"{plain}_{sha256(name.encode()).hexdigest()[:8]}")
    whole = ".".join([first, *parts])
    return whole if len(whole) <= 256 else f"{first}.{sha256(whole.encode()).hexdigest()[:32]}"
