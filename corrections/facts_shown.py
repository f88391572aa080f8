"""A fact in plain words: what it says, how far it was checked, who wrote it, where it applies, why it is kept."""

import json
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corrections.retention_words import window_words
from corrections.words import Badge
from memory.fact_shape import FactView
from memory.retention import RetentionBasis, Windows

PREVIEW_MAX = 1000
_BADGES = {
    "unverified": Badge("?", gettext_lazy("Not checked"), "warn"),
    "asserted": Badge("“", gettext_lazy("Stated"), "info"),
    "verified": Badge("✓", gettext_lazy("Checked"), "ok"),
    "stale": Badge("◷", gettext_lazy("Not up to date"), "warn"),
    "removed": Badge("∅", gettext_lazy("Not used any more"), ""),
}
STATE_WORDS = {
    "unchecked": gettext_lazy("Not checked"),
    "checked": gettext_lazy("Checked"),
    "stale": gettext_lazy("Not up to date"),
    "removed": gettext_lazy("Not used any more"),
}
_TEXT_NAMES = ("text", "content", "message", "summary", "value")


def badge_of(fact: FactView) -> Badge:
    if is_over(fact) or (
        fact.invalidated_at is not None and fact.invalidation_reason != "superseded"
    ):
        return _BADGES["removed"]
    return _BADGES["stale" if fact.is_stale else fact.trust]


def is_over(fact: FactView) -> bool:
    """Whether reads have stopped by themselves: what is shown of it then, a hold keeps."""
    return fact.expires_at is not None and fact.expires_at <= timezone.now()


def who_reads(fact: FactView) -> str:
    """Who can still use it, in one sentence."""
    if is_over(fact):
        return _("No agent reads it any more: its time is over. A legal hold keeps it.")
    if badge_of(fact) is _BADGES["removed"]:
        return _("No agent reads it any more.")
    if fact.is_stale:
        return _("It is older than it may be; agents are told so until it has been read anew.")
    return {
        "unverified": _("An agent wrote it and nobody has checked it; agents are told so."),
        "asserted": _("An application or a person stated it; agents read it."),
        "verified": _("Somebody with the right has checked it; agents read it."),
    }[fact.trust]


def preview(fact: FactView) -> str | None:
    """The content as one line; None when it lies elsewhere or is gone."""
    return None if fact.content_text is None else line_of(json.loads(fact.content_text))


def line_of(value: Any) -> str:
    """A JSON value in one line of plain words: `city: Oslo · seat: aisle`; at most PREVIEW_MAX characters."""
    if isinstance(value, dict):
        told = [value[name] for name in _TEXT_NAMES if isinstance(value.get(name), str)]
        words = str(told[0]) if told else " · ".join(f"{k}: {_short(v)}" for k, v in value.items())
    else:
        words = _short(value)
    return words[:PREVIEW_MAX]


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        return ", ".join(_short(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fields_of(text: str | None) -> list[tuple[str, str]]:
    """The members of a small flat object as names and words; nothing for any other content."""
    value = json.loads(text) if text and text.startswith("{") and len(text) <= PREVIEW_MAX else None
    if not isinstance(value, dict) or any(
        isinstance(one, dict)
        or (isinstance(one, list) and any(isinstance(x, dict | list) for x in one))
        for one in value.values()
    ):
        return []
    return [(name.replace("_", " "), _short(one)) for name, one in value.items()]


def writer_of(fact: FactView) -> str:
    """Who wrote it, as `names_of` knows writers; an agent by its name."""
    kind, who = fact.attributed_kind, fact.attributed_id
    return who if kind == "agent" else f"{kind}:{who}"


def where_words(fact: FactView) -> str:
    """The containers that its scope names."""
    names = {
        "userId": _("about you"),
        "orgId": _("organisation %(id)s"),
        "projectId": _("project %(id)s"),
        "threadId": _("conversation %(id)s"),
        "sessionId": _("session %(id)s"),
        "participantId": _("with you as participant"),
    }
    scope = {key: id for key, id in fact.scope.items() if key in names}
    if not scope:
        return _("in the whole workspace")
    return ", ".join(
        names[key] % {"id": id} if "%(id)s" in names[key] else names[key]
        for key, id in scope.items()
    )


def scope_lines(fact: FactView) -> list[tuple[str, str]]:
    """What its scope names, by name, as those who govern read it."""
    names = {
        "userId": _("person"),
        "orgId": _("organisation"),
        "projectId": _("project"),
        "threadId": _("conversation"),
        "sessionId": _("session"),
        "participantId": _("participant"),
    }
    return [(names[key], id) for key, id in fact.scope.items() if key in names]


def ladder(basis: RetentionBasis) -> list[tuple[str, str, bool]]:
    """Why it is kept: each rung in order, what it says here, and which one decides."""
    deciding = "legal-hold" if basis.hold_ids else _RUNGS.get(basis.rule, basis.rule)
    said = {
        "legal-hold": (_("Legal hold"), _("yes") if basis.hold_ids else _("none")),
        "erasure": (
            _("Erasure"),
            _("it is being taken away") if basis.rule == "erasure" else _("none"),
        ),
        "fact": (_("The fact itself says"), _own_words(basis)),
        "type-policy": (_("The rule of its type"), _windows(basis.type_windows)),
        "tenant-default": (_("The workspace's default"), _windows(basis.default_windows)),
        "deleted": (
            _("Removed"),
            _("yes, destroyed by a sweep to come") if basis.rule == "deleted" else _("no"),
        ),
        "unverified-window": (
            _("Not checked"),
            _("read until %(day)s, unless somebody checks it")
            % {"day": _day(basis.unverified_until)}
            if basis.unverified_until is not None
            else _("does not apply"),
        ),
        "none": (_("Otherwise"), _("kept until it is removed")),
    }
    return [
        (name, _with_end(says, basis) if rung == deciding else says, rung == deciding)
        for rung, (name, says) in said.items()
    ]


_RUNGS = {"fact-keep-until": "fact", "fact-keep-days": "fact"}


def _own_words(basis: RetentionBasis) -> str:
    if basis.own.keep_until is not None:
        return _("kept until %(day)s") % {"day": _day(basis.own.keep_until)}
    return _windows((basis.own.keep_days, None))


def _windows(windows: Windows) -> str:
    return window_words(*windows) if any(windows) else _("nothing")


def _with_end(says: str, basis: RetentionBasis) -> str:
    """What the deciding rung says, with the day on which it ends."""
    is_said = basis.rule in ("fact-keep-until", "unverified-window")
    if basis.hold_ids or basis.until is None or is_said:
        return says
    return _("%(says)s: until %(day)s") % {"says": says, "day": _day(basis.until)}


def _day(moment: object) -> str:
    return str(moment)[:10]


@dataclass(frozen=True, slots=True)
class FactShown:
    """One fact ready to be shown."""

    fact: FactView
    badge: Badge
    preview: str | None
    where: str
    who_reads: str
    writer: str


def shown(fact: FactView) -> FactShown:
    return FactShown(
        fact, badge_of(fact), preview(fact), where_words(fact), who_reads(fact), writer_of(fact)
    )
