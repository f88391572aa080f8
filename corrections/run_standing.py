"""How a run stands: what its last verification found, up to which entry that holds, and how many came since and wait.

What was found of a run says nothing of an entry that was appended later, so every page that shows a state shows this.
"""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corrections.words import Badge, Words, chain_badge
from memory.integrity.states import entries_since

_UP_TO: dict[str, Words] = {
    "verified": gettext_lazy("Intact up to #%(to)d"),
    "verified-unsealed-tail": gettext_lazy("Intact up to #%(to)d, end not anchored yet"),
    "erased-attested": gettext_lazy("Intact up to #%(to)d, payloads erased"),
    "unanchored": gettext_lazy("Intact up to #%(to)d, not anchored"),
    "linkage-only": gettext_lazy("Links hold up to #%(to)d, content erased"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """`to`: the last entry that the finding is about, None for none; `newer`: entries that came after it, not verified yet.

    `gone`: entries that were verified once, and of which the run's head knows nothing any more.
    """

    badge: Badge
    to: int | None
    newer: int
    gone: int
    verified_at: str | None


def standing(
    *, state: str, verified_to: int | None, verified_at: str | None, next_sequence: int
) -> Standing:
    """What to say of a run whose next entry gets `next_sequence`."""
    to = verified_to if verified_to is not None and verified_to >= 0 else None
    newer = entries_since(state, verified_to, next_sequence)
    gone = max(0, to + 1 - next_sequence) if to is not None and state in _UP_TO else 0
    badge = chain_badge(state)
    if gone:
        badge = Badge("✗", _("Entries are gone since it was verified"), "bad")
    elif newer:
        badge = Badge("✓", str(_UP_TO[state]) % {"to": to}, "info")
    return Standing(badge, to, newer, gone, verified_at)
