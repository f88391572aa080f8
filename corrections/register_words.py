"""How something ended, and why; and a memory in words for those who govern, who are not the person it is about.

Codes stay in addresses and in the log.
"""

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from corrections.remembered import case_words
from corrections.words import Badge, Words
from memory.records.record import Record

HOW: dict[str, Badge] = {
    "replaced": Badge("↻", _("Replaced"), "info"),
    "expired": Badge("◷", _("Out of date"), ""),
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
    "delete-after-days": _("its time was over"),
    "keep-days": _("the time that it had to be kept was over"),
    "keep-until": _("the day until which it had to be kept was over"),
    "unverified-window": _("nobody had checked it in time"),
    "expired": _("its time was over"),
    "erasure": _("an erasure took it"),
    "wrong-person": _("it was about somebody else"),
    "restored": _("it had ended before the database was restored"),
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


_STANDS: dict[str, Badge] = {
    "active": Badge("✓", _("In use"), "ok"),
    "superseded": HOW["replaced"],
    "expired": HOW["expired"],
    "deleted": HOW["forgotten"],
}


def standing_badge(record: Record) -> Badge:
    """How a memory stands, said of somebody else."""
    if record.status == "active" and record.review == "withdrawn":
        return Badge("‖", _("Set aside"), "held")
    if record.status == "active" and record.disputed_at is not None:
        return Badge("!", _("Disputed"), "warn")
    return _STANDS[record.status]


def origin_words(record: Record) -> str:
    """Where a memory came from, said of somebody else."""
    told = {
        "user_stated": gettext("the person said it"),
        "user_correction": gettext("the person corrected it"),
        "system_record": gettext("copied from a system by %(agent)s"),
    }.get(record.source_type, gettext("guessed by %(agent)s"))
    return told % {"agent": record.captured_by} if "%(agent)s" in told else told


def reach_words(record: Record) -> str:
    """Where a memory applies: its level, and what it is bound to."""
    level = {
        "instance": gettext("in one case"),
        "task": gettext("in one task"),
        "session": gettext("in one conversation"),
        "project": gettext("in the project"),
        "client": gettext("for the client"),
        "user": gettext("everywhere for the person"),
        "org": gettext("in the whole organisation"),
    }.get(record.level, record.level)
    bound = ", ".join(f"{case_words(name)} {value}" for name, value in record.bindings.items())
    return f"{level} ({bound})" if bound else level
