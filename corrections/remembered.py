"""A memory in plain words: what it says, where it came from, where it applies, and its state with who can still use it."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from corrections.words import Badge
from memory.records.decision import ENOUGH_OBSERVATIONS
from memory.records.record import Record

_ID_AT_END = re.compile(r"(?:[_.-]+id|(?<=[a-z])I[dD])$")
_BETWEEN = re.compile(r"[_.-]+")
_WITHDRAWN = Badge("‖", gettext_lazy("Set aside"), "held")
_FORGOTTEN = Badge("∅", gettext_lazy("Forgotten"), "")
_STATES: dict[str, Badge] = {
    "guessed": Badge("?", gettext_lazy("Guessed"), "warn"),
    "confirmed": Badge("✓", gettext_lazy("Confirmed by you"), "ok"),
    "corrected": Badge("✎", gettext_lazy("Corrected by you"), "ok"),
    "stated": Badge("“", gettext_lazy("You said it"), "ok"),
    "system": Badge("⇄", gettext_lazy("From a system"), "info"),
    "policy": Badge("§", gettext_lazy("A rule, read where it is kept"), "info"),
    "disputed": Badge("!", gettext_lazy("Disputed by you"), "warn"),
    "out-of-date": Badge("◷", gettext_lazy("Out of date"), ""),
    "replaced": Badge("↻", gettext_lazy("Replaced"), ""),
    "set-aside": _WITHDRAWN,
    "forgotten": _FORGOTTEN,
    "sealed": Badge("‖", gettext_lazy("Set aside, a sealed copy is kept"), "held"),
}
STATE_NAMES = tuple(_STATES)
LIVE_STATES = ("guessed", "confirmed", "corrected", "stated", "system", "policy", "disputed")


def state_badge(state: str) -> Badge:
    return _STATES[state]


def state_of(record: Record) -> str:
    """One of STATE_NAMES."""
    if record.status == "deleted":
        return "sealed" if record.hold_count else "forgotten"
    if record.status == "expired":
        return "out-of-date"
    if record.status == "superseded":
        return "replaced"
    if record.review == "withdrawn":
        return "set-aside"
    if record.disputed_at is not None:
        return "disputed"
    if record.authority == "policy":
        return "policy"
    if record.source_type == "user_correction":
        return "corrected"
    if record.confirmed_at is not None:
        return "confirmed"
    return {"agent_inferred": "guessed", "system_record": "system"}.get(
        record.source_type, "stated"
    )


def who_uses(state: str, record: Record) -> str:
    """Who can still use it, in one sentence."""
    if record.is_upcoming and state in LIVE_STATES:
        return _("Agents use it from its first day on; until then, what holds now.")
    if state == "guessed" or (
        state == "confirmed"
        and record.source_type == "agent_inferred"
        and record.observations < ENOUGH_OBSERVATIONS
    ):
        return _("Agents ask you before they rely on it.")
    if state in ("out-of-date", "replaced") and record.hold_count and record.value_text is None:
        state = "sealed"
    return {
        "disputed": _("Agents are told that you disagree, and ask before they use it."),
        "system": _("Agents check it with the system it came from before they use it."),
        "policy": _("Agents read the rule where it is kept, each time."),
        "out-of-date": _("No agent uses it any more."),
        "replaced": _("No agent uses it any more; something newer took its place."),
        "set-aside": _("No agent uses it while it is looked into."),
        "forgotten": _("No agent uses it any more."),
        "sealed": _(
            "No agent uses this any more. A sealed copy is kept for a legal reason, and is erased when that ends."
        ),
    }.get(state, _("Agents use it where it applies."))


def key_words(key: str) -> str:
    """`travel.seat_side` as `travel › seat side`."""
    return " › ".join(part.replace("_", " ") for part in key.split("."))


def value_words(text: str | None) -> str | None:
    """A value as people read it: text without quotes, anything else as JSON; None when there is none."""
    if text is None:
        return None
    value = json.loads(text)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return value if isinstance(value, str) else text


def value_of(written: str, before: str | None) -> Any:
    """What somebody typed as a value of the kind that was there: numbers, yes and no, and JSON stay what they are."""
    earlier = None if before is None else json.loads(before)
    if isinstance(earlier, str) or earlier is None:
        return written
    if isinstance(earlier, bool) and written.strip().casefold() in (
        _("yes").casefold(),
        _("no").casefold(),
    ):
        return written.strip().casefold() == _("yes").casefold()
    try:
        return json.loads(written)
    except ValueError:
        return written


def level_words(level: str) -> str:
    return {
        "instance": _("only in this case"),
        "task": _("in this task"),
        "session": _("in this conversation"),
        "project": _("in this project"),
        "client": _("for this client"),
        "user": _("everywhere for you"),
        "org": _("in the whole organisation"),
    }.get(level, level)


def case_words(name: str) -> str:
    """A kind of case: `trip_id` and `tripId` as `trip`."""
    bare = _ID_AT_END.sub("", name) or name
    return _BETWEEN.sub(" ", bare).strip() or name


def scope_words(level: str, bindings: dict[str, Any]) -> str:
    """Where it applies: the level, and what it is bound to."""
    bound = ", ".join(f"{case_words(name)} {value}" for name, value in bindings.items())
    return f"{level_words(level)} ({bound})" if bound else level_words(level)


def source_words(record: Record) -> str:
    """Where it came from, in one line."""
    source = record.source_type
    if source == "user_correction":
        return _("you corrected it")
    if source == "user_stated":
        return _("you said it")
    if source == "system_record":
        return _("copied from %(system)s") % {
            "system": record.source_of_truth or record.captured_by
        }
    seen = ngettext("seen once", "seen %(n)d times", record.observations) % {
        "n": record.observations
    }
    return _("guessed by %(agent)s, %(seen)s") % {"agent": record.captured_by, "seen": seen}


@dataclass(frozen=True, slots=True)
class Remembered:
    """One memory ready to be shown."""

    record: Record
    state: str
    badge: Badge
    key: str
    value: str | None
    source: str
    applies: str
    who_uses: str

    @property
    def is_live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def is_correctable(self) -> bool:
        return self.is_live and self.state != "policy"


def remembered(record: Record) -> Remembered:
    state = state_of(record)
    return Remembered(
        record=record,
        state=state,
        badge=_STATES[state],
        key=key_words(record.key),
        value=value_words(record.value_text),
        source=source_words(record),
        applies=scope_words(record.level, record.bindings),
        who_uses=who_uses(state, record),
    )
