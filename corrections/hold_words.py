"""Legal holds in words: how one stands, what it names, what it refused, why a release is refused."""

import json
from collections.abc import Sequence
from datetime import date
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corrections.forms_holds import STATES
from corrections.words import Badge, Words
from memory.errors import ReleaseRefused
from memory.holds import Hold

_BADGES = {
    "active": Badge("‖", STATES["active"], "held"),
    "release-requested": Badge("?", STATES["release-requested"], "warn"),
    "released": Badge("✓", STATES["released"], ""),
}
STANDINGS: dict[str, Badge] = {
    "served": Badge("✓", gettext_lazy("In use"), "ok"),
    "waiting": Badge("?", gettext_lazy("Waits for review"), "warn"),
    "aside": Badge("∅", gettext_lazy("Taken out of use"), "warn"),
    "ended": Badge("∅", gettext_lazy("Not used any more"), ""),
    "sealed": Badge("‖", gettext_lazy("Sealed copy only"), "held"),
    "gone": Badge("✗", gettext_lazy("Gone"), ""),
}
_ACTS: dict[str, Words] = {
    "memory.deleteFact": gettext_lazy("Delete a fact"),
    "memory.supersedeFact": gettext_lazy("Change a fact"),
    "memory.refreshFact": gettext_lazy("Refresh a fact"),
    "memory.remember": gettext_lazy("Remember something in its place"),
    "memory.correct": gettext_lazy("Correct a memory"),
    "memory.correctRecord": gettext_lazy("Correct a memory"),
    "memory.actOnRoute": gettext_lazy("Correct a memory"),
    "memory.createErasure": gettext_lazy("Erase somebody"),
    "page": gettext_lazy("Change it on a page"),
    "import": gettext_lazy("Import over it"),
}


def hold_badge(hold: Hold) -> Badge:
    return _BADGES[hold.status]


def is_review_due(hold: Hold, today: date) -> bool:
    return hold.released_at is None and hold.review_on <= today


def act_words(act: str) -> Words:
    """What was asked for; an unknown code is shown as it is."""
    return _ACTS.get(act, act)


def scope_lines(scope_text: str) -> Sequence[tuple[str, Sequence[str]]]:
    """What a hold names, as rows of a name and its ids or days."""
    said: dict[str, Any] = json.loads(scope_text)
    names = {
        "subjects": _("About"),
        "types": _("Types of facts"),
        "runs": _("From runs"),
        "from": _("Written from"),
        "until": _("Written before"),
        "facts": _("Single facts"),
        "records": _("Single memories"),
    }
    lines: list[tuple[str, Sequence[str]]] = [
        (names[key], value if isinstance(value, list) else [value])
        for key, value in said.items()
        if key in names
    ]
    later = _("yes, as it is written") if said.get("futureItems") else _("no")
    return [*lines, (_("What is written later"), [later])]


def refusal_words(error: ReleaseRefused) -> str:
    """Why a release does not go on, and what helps."""
    return {
        "released": _("This hold is released already."),
        "not-requested": _("Nobody who is still an admin asks for its release any more."),
        "already-requested": _("Somebody asked for its release already."),
        "same-person": _("You asked for the release yourself: another admin approves it."),
        "cooling-off": _(
            "You have your role for too short a time: whoever was made an admin a moment ago does not count. "
            "Another admin can do it, or you can later."
        ),
        "reauthenticate": _("Prove once more that it is you, then do it again."),
    }.get(error.reason, str(error))
