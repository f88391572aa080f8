"""Which tool results say something about a customer, and what fact they make.

The rule: the result is a JSON object; the tool's name names a thing (`get_reservation_details`: reservation); the result, or
else the call, says which one (`reservation_id`) and whose it is (`user_id` or `customer_id`). What is known of the customer
as such is a `customer-profile`. Errors, lists and plain texts make none.
"""

import re
from dataclasses import dataclass
from typing import Any

from memory import admission

PEOPLE = ("user", "customer")
PROFILE = "customer-profile"
_ID = "_id"


@dataclass(frozen=True, slots=True)
class ToolFact:
    """`thing`: which one of its type; `customer`: whom it is about."""

    type: str
    thing: str
    customer: str
    content: dict[str, Any]


def fact_of_result(tool: str, arguments: Any, result: Any) -> ToolFact | None:
    """The fact that a tool's result makes, if any. `arguments`: as the call had them; `result`: the text that came back."""
    content = _object(result)
    if content is None:
        return None
    said = {**_ids(arguments), **_ids(content)}
    customer = next((said[f"{one}{_ID}"] for one in PEOPLE if f"{one}{_ID}" in said), None)
    named = [field.removesuffix(_ID) for field in said if _names(tool, field.removesuffix(_ID))]
    if customer is None or not named:
        return None
    # A tool about a person's thing names both: the thing is what the result is about.
    thing = next((one for one in named if one not in PEOPLE), named[0])
    if thing in PEOPLE:
        return ToolFact(PROFILE, customer, customer, {f"{thing}{_ID}": customer, **content})
    return ToolFact(thing.replace("_", "-"), said[f"{thing}{_ID}"], customer, content)


def _object(result: Any) -> dict[str, Any] | None:
    if not isinstance(result, str) or not result.lstrip().startswith("{"):
        return None
    data = result.encode()
    try:
        value = admission.admit(data, max_bytes=len(data))
    except admission.BadInput:
        return None
    return value if isinstance(value, dict) else None


def _ids(value: Any) -> dict[str, str]:
    """The ids that an object names at its top level; numbers count as their digits."""
    if not isinstance(value, dict):
        return {}
    return {
        name: str(one)
        for name, one in value.items()
        if name.endswith(_ID) and isinstance(one, str | int) and one and one is not True
    }


def _names(tool: str, thing: str) -> bool:
    return bool(thing) and re.search(rf"(^|_){re.escape(thing)}(_|$)", tool) is not None
