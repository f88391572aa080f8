"""What a receipt says that an act changed: per kind of act, only what it really did.

What agents use is said where they use something else since, who stopped using it only where something stopped, and where it
applies only where it does.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from corrections.queries.my_receipts import Outcome
from corrections.remembered import scope_words, value_words
from memory.records.receipts import Receipt

NOWHERE = ("out-of-date", "wrong-person", "forget")
"""After these acts it applies nowhere."""


@dataclass(frozen=True, slots=True)
class Told:
    """`gone`, `come`: a value that was replaced, and by what. `says`: what it says, or said, where that is the same.
    `has_stopped`: agents stopped using something. `effects`: what is otherwise now, a sentence each.
    """

    says_label: str = ""
    says: str | None = None
    gone: str | None = None
    come: str | None = None
    applied: str | None = None
    applies_label: str = ""
    applies: str = ""
    has_stopped: bool = False
    effects: list[str] = field(default_factory=list)
    along: str = ""
    versions: str = ""
    together: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the words are made of: values and places before and after, in words."""

    receipt: Receipt
    outcome: Outcome
    before: str | None
    after: str | None
    was_at: str
    is_at: str

    @property
    def moved(self) -> str | None:
        """Where it applied before, if that is elsewhere."""
        return self.was_at if self.receipt.is_elsewhere else None

    @property
    def is_back(self) -> bool:
        """Whether what came of it is not what it was on: it came back under another id."""
        return self.receipt.after_ids[:1] not in ([], [self.receipt.record_id])

    @property
    def nowhere(self) -> str:
        return _("nowhere") if self.receipt.undone_at is None else _("nowhere, until it was undone")

    def applies_label(self) -> str:
        if self.receipt.undone_at is not None:
            return _("Applied until it was undone")
        return _("Applies now") if self.outcome.is_in_use else _("Applied from then on")


def told_by(receipt: Receipt, outcome: Outcome, values: Mapping[str, str]) -> Told:
    """What the receipt says of its act. `values`: canonical texts by record id, as far as they may be shown."""
    before, after = (
        value_words(values.get(ids[0])) if ids else None
        for ids in (receipt.before_ids, receipt.after_ids)
    )
    was, now = receipt.state_before, _scope(receipt)
    read = _Read(
        receipt,
        outcome,
        before,
        after,
        scope_words(was["level"], was["bindings"]),
        scope_words(now["level"], now["bindings"]),
    )
    words = _WORDS.get(receipt.route, _correction)(read)
    if receipt.undone_at is not None:
        words = replace(words, effects=[], has_stopped=False)
    along = _ALONG.get(receipt.route, _along_correction)(outcome.along)
    versions = ngettext("%(n)d earlier version", "%(n)d earlier versions", outcome.versions)
    return replace(
        words,
        along=along % {"n": outcome.along} if outcome.along else "",
        versions=versions % {"n": outcome.versions} if outcome.versions else "",
        together=_together(receipt),
    )


def _scope(receipt: Receipt) -> Any:
    return json.loads(receipt.scope_text)


def way_words(name: str) -> str:
    """What the way of a receipt is called that is no route of the tenant."""
    return _("Undo") if name == "undo" else name


def where_words(route: str, after_ids: list[str], level: str, bindings: dict[str, Any]) -> str:
    """Where something applies after an act, for the list of receipts."""
    is_gone = route in NOWHERE or (route in ("never-infer", "undo") and not after_ids)
    return _("nowhere") if is_gone else scope_words(level, bindings)


def _same(read: _Read, *effects: str) -> Told:
    """It says what it said, and is still in use."""
    label = read.applies_label() if read.moved else _("Applies")
    return Told(
        says_label=_("It says"),
        says=read.after if read.after is not None else read.before,
        applied=read.moved,
        applies_label=label,
        applies=read.is_at,
        effects=list(effects),
    )


def _ended(read: _Read, *effects: str, applies: str | None = None) -> Told:
    """No agent uses it since."""
    return Told(
        says_label=_("It said"),
        says=read.before,
        applied=read.was_at,
        applies_label=_("Applies now"),
        applies=applies or read.nowhere,
        has_stopped=True,
        effects=list(effects),
    )


def _back(read: _Read, *effects: str) -> Told:
    """Agents use it again."""
    return Told(
        says_label=_("It says again"),
        says=read.after,
        applied=_("nowhere"),
        applies_label=read.applies_label(),
        applies=read.is_at,
        effects=[_("Agents use it again."), *effects],
    )


def _confirm(read: _Read) -> Told:
    effects = [_("Agents know that you agree with it.")]
    if read.receipt.state_before.get("disputed_at") is not None:
        effects.append(_("You no longer disagree with it."))
    if read.moved:
        effects.append(_("It applies more widely than before."))
    return _same(read, *effects)


def _correction(read: _Read) -> Told:
    effects = [_("Agents use the new words there, at once.")]
    has_ended = read.outcome.has_ended
    if read.receipt.before_ids and not has_ended:
        effects.append(
            _("Where it applied before, the words before stay in use: that did not change.")
        )
    is_same = read.before is not None and read.before == read.after
    words = Told(
        applied=read.was_at if read.receipt.before_ids else None,
        applies_label=read.applies_label(),
        applies=read.is_at,
        has_stopped=has_ended,
        effects=effects,
    )
    if is_same:
        return replace(words, says_label=_("It says"), says=read.after)
    return replace(words, gone=read.before, come=read.after)


def _never_infer(read: _Read) -> Told:
    no_more = _("Agents may not guess this about you again.")
    if read.outcome.has_ended:
        return _ended(read, no_more)
    return _same(read, no_more, _("This one is no guess: it stays in use."))


def _undo(read: _Read) -> Told:
    undid = read.outcome.undid
    if undid == "confirm":
        return _same(read, _("Agents no longer read that you agreed with it."))
    if undid == "dispute":
        return _same(read, _("Agents no longer ask because you disagreed."))
    if undid == "never-infer":
        may = _("Agents may guess this about you again.")
        return _back(read, may) if read.is_back else _same(read, may)
    if undid in NOWHERE:
        return _back(read)
    if not read.receipt.after_ids:
        return _ended(
            read,
            _("In that case agents use again what applies more widely, if there is something."),
        )
    again = _("Agents use again what it said before, and no more what it was corrected to.")
    return replace(_correction(read), effects=[again], has_stopped=False)


_WORDS: dict[str, Callable[[_Read], Told]] = {
    "confirm": _confirm,
    "out-of-date": _ended,
    "wrong-person": lambda read: _ended(
        read,
        applies=None if read.receipt.undone_at else _("nowhere, until an admin has decided"),
    ),
    "dispute": lambda read: _same(
        read, _("Agents are told that you disagree, and ask before they use it.")
    ),
    "forget": _ended,
    "never-infer": _never_infer,
    "undo": _undo,
}


def _along_correction(n: int) -> str:
    return ngettext(
        "%(n)d more memory stopped with it: derived from it, or a guess that said the same",
        "%(n)d more memories stopped with it: derived from it, or guesses that said the same",
        n,
    )


_ALONG: dict[str, Callable[[int], str]] = {
    "out-of-date": lambda n: ngettext(
        "%(n)d memory that was derived from it ended, too",
        "%(n)d memories that were derived from it ended, too",
        n,
    ),
    "wrong-person": lambda n: ngettext(
        "%(n)d more memory was set aside: derived from it, or a guess that said the same",
        "%(n)d more memories were set aside: derived from it, or guesses that said the same",
        n,
    ),
    "dispute": lambda n: ngettext(
        "%(n)d memory that was derived from it: agents ask about that, too",
        "%(n)d memories that were derived from it: agents ask about those, too",
        n,
    ),
    "forget": lambda n: ngettext(
        "%(n)d more memory was forgotten: derived from it, or a guess that said the same",
        "%(n)d more memories were forgotten: derived from it, or guesses that said the same",
        n,
    ),
    "never-infer": lambda n: ngettext(
        "%(n)d more memory ended: a guess of that kind, or derived from one",
        "%(n)d more memories ended: guesses of that kind, or derived from one",
        n,
    ),
    "undo": lambda n: ngettext(
        "%(n)d memory that was derived from what was taken back ended",
        "%(n)d memories that were derived from what was taken back ended",
        n,
    ),
}


def _together(receipt: Receipt) -> str:
    """Others whose place it took, or that came back with it."""
    replaced, back = len(receipt.before_ids) - 1, len(receipt.after_ids) - 1
    if receipt.route == "undo" and back > 0:
        told = ngettext("%(n)d more memory came back", "%(n)d more memories came back", back)
        return told % {"n": back}
    if replaced > 0:
        told = ngettext(
            "%(n)d more memory was replaced", "%(n)d more memories were replaced", replaced
        )
        return told % {"n": replaced}
    return ""
