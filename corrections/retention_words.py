"""How long facts stay, in words: windows, the rungs of the ladder, the rules that a sweep counts by."""

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from corrections.words import Badge, Words
from memory.queries.sweeps import PastSweep

_RULES: dict[str, Words] = {
    "deleted": gettext_lazy("somebody deleted it"),
    "unverified-window": gettext_lazy("nobody had checked it in time"),
    "delete-after-days": gettext_lazy("its time was over"),
    "keep-until": gettext_lazy("the day that it named was over"),
    "keep-days": gettext_lazy("the time that it must be kept was over"),
    "erasure": gettext_lazy("an erasure took it"),
}


def rule_words(rule: str) -> Words:
    """Why something was destroyed; an unknown code is shown as it is."""
    return _RULES.get(rule, rule)


def _days(count: int) -> str:
    return ngettext("%(n)d day", "%(n)d days", count) % {"n": count}


def window_words(keep_days: int | None, delete_after_days: int | None) -> str:
    """A rule in one sentence."""
    if keep_days is not None and delete_after_days is not None:
        return _("can't be deleted for %(keep)s; read for %(delete)s, then destroyed") % {
            "keep": _days(keep_days),
            "delete": _days(delete_after_days),
        }
    if keep_days is not None:
        return _("kept for %(keep)s, then destroyed") % {"keep": _days(keep_days)}
    if delete_after_days is not None:
        return _("destroyed after %(delete)s") % {"delete": _days(delete_after_days)}
    return _("no rule: kept until somebody deletes it")


Windows = tuple[int | None, int | None]


def type_words(own: Windows, default: Windows) -> str:
    """The rule of a type in one sentence; without one, what falls to its facts. Each as keepDays and deleteAfterDays."""
    if own != (None, None):
        return window_words(*own)
    if default == (None, None):
        return _("no rule of its own, and the workspace has none: kept until somebody deletes it")
    return _("no rule of its own; the workspace's default decides: %(default)s") % {
        "default": window_words(*default)
    }


def ladder_in_general() -> Sequence[tuple[str, str]]:
    """The rungs in order: the highest that speaks decides."""
    return [
        (_("Legal hold"), _("kept until every hold on it is released, whatever else is said")),
        (_("Erasure"), _("taken away whole, as soon as no hold keeps it")),
        (_("The fact itself"), _("a day or a number of days that was written with it")),
        (_("The rule of its type"), _("below, one a type")),
        (_("The workspace's default"), _("for all facts that nothing else speaks for")),
    ]


SWEEP_BADGES: dict[str, Badge] = {
    "dry-run": Badge("◌", gettext_lazy("Dry run"), "info"),
    "running": Badge("…", gettext_lazy("Running"), "info"),
    "done": Badge("✓", gettext_lazy("Done"), "ok"),
    "stopped": Badge("!", gettext_lazy("Stopped"), "warn"),
}


def sweep_badge(sweep: PastSweep) -> Badge:
    return SWEEP_BADGES["dry-run" if sweep.is_dry_run else sweep.status]
