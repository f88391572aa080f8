"""How something ended, and why, in words. Codes stay in addresses and in the log."""

from django.utils.translation import gettext_lazy as _

from corrections.words import Badge, Words

HOW: dict[str, Badge] = {
    "replaced": Badge("↻", _("Replaced"), "info"),
    "expired": Badge("⌛", _("Out of date"), ""),
    "forgotten": Badge("∅", _("Forgotten"), "warn"),
    "removed": Badge("∅", _("Removed"), "warn"),
    "erased": Badge("✗", _("Erased"), "bad"),
    "destroyed": Badge("✗", _("Destroyed at its end"), ""),
}
_REASONS: dict[str, Words] = {
    "user-requested": _("a person asked for it"),
    "user_correction": _("a correction took its place"),
    "user_stated": _("a person said something newer"),
    "agent_inferred": _("a newer guess took its place"),
    "system_record": _("a system says something newer"),
    "earlier": _("something newer was there already"),
    "out-of-date": _("it was said to be out of date"),
    "never-infer": _("guessing it was ruled out"),
    "valid-until": _("its last day was over"),
    "event": _("an event ended it"),
    "undo": _("an act was undone"),
    "erased": _("an erasure took it"),
    "superseded": _("a newer version took its place"),
    "deleted": _("somebody removed it"),
    "expired": _("its time was over"),
    "erasure": _("an erasure took it"),
    "wrong-person": _("it was about somebody else"),
}


SUBJECT_TYPES: dict[str, Words] = {
    "user": _("the person"),
    "project": _("the project"),
    "client": _("the client"),
    "org": _("the organisation"),
}


def how_badge(how: str) -> Badge:
    return HOW.get(how, Badge("?", how, ""))


def reason_words(code: str) -> Words:
    """What a reason code means; an unknown one is shown as it is."""
    return _REASONS.get(code, code.replace("-", " ").replace("_", " "))
