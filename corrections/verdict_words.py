"""A report of a verification in words: the verdict, what stands against what, what it proves and what it does not.

Each sentence is true of just that state, and of just that kind of damage: a report of a broken run says nothing of proof.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from corrections.words import OF_THE_SEALS, Words, chain_badge

Report = Mapping[str, Any]

_MUST_BE, _IS = gettext_lazy("Must be"), gettext_lazy("Is")
_HASHES: dict[str, tuple[Words, Words]] = {
    "content": (gettext_lazy("Stored hash"), gettext_lazy("Recomputed from what is stored")),
    "link": (gettext_lazy("The run's head says"), gettext_lazy("The last entry says")),
    "seal": (gettext_lazy("Sealed hash"), gettext_lazy("Recomputed from what is stored")),
    "checkpoint": (gettext_lazy("Signed root"), gettext_lazy("Recomputed from what is stored")),
    "anchor": (gettext_lazy("Root anchored outside"), gettext_lazy("Recomputed from what is stored")),
}  # fmt: skip
_NAMES_THE_ONE_BEFORE = (
    gettext_lazy("Hash of the entry before it"),
    gettext_lazy("Hash that it names"),
)
_OTHERS: dict[str, tuple[Words, Words]] = {
    "gap": (gettext_lazy("Number that must come"), gettext_lazy("What comes")),
    "duplicate": (gettext_lazy("Number that must come"), gettext_lazy("Number that comes")),
    "reordered": (gettext_lazy("Place it has now"), gettext_lazy("Place it was written for")),
    "scope": (gettext_lazy("Must belong to"), gettext_lazy("Was written for")),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """Two values that should be one, each by what it is. `are_hashes`: their characters can be held against each other."""

    expected: str
    found: str
    expected_words: Words
    found_words: Words
    are_hashes: bool


def compared(bad: Mapping[str, Any], hash_before: str | None = None) -> Compared:
    """What `expected` and `found` of a first bad place are. Of changed content both come out of the same database, so that
    neither passes for the true one. `hash_before`: that of the entry before it, as stored."""
    expected, found, what = str(bad["expected"]), str(bad["found"]), bad["class"]
    are_hashes = expected.startswith("sha256:") and found.startswith("sha256:")
    words = (_HASHES if are_hashes else _OTHERS).get(what, (_MUST_BE, _IS))
    if are_hashes and what in ("link", "fork") and (what == "fork" or expected == hash_before):
        words = _NAMES_THE_ONE_BEFORE
    return Compared(expected, found, *words, are_hashes)


def which_changed(
    bad: Mapping[str, Any], named_after: str | None, entry_hash: str | None = None
) -> str:
    """Whether the content or the stored hash was changed, where what follows the entry tells: `named_after` is the hash that
    the next entry, or the run's head, names as this entry's; `entry_hash` the one that is stored with it."""
    if bad["class"] != "content" or named_after is None:
        return ""
    if named_after == bad["found"]:
        return _(
            "What follows this entry names the recomputed hash. So the entry says what it always said, and its stored hash "
            "was changed."
        )
    if named_after == bad["expected"]:
        return _(
            "What follows this entry names the stored hash. So the hash is the one it was written with, and what the entry "
            "says was changed."
        )
    if named_after == entry_hash and str(bad["found"]).startswith("sha256:"):
        return _(
            "What differs is the hash of the payload. What follows this entry names the hash that is stored with the entry, so "
            "it was the payload that was changed, or what is stored as its hash."
        )
    return ""


def verdict(report: Report) -> str:
    """The page's heading."""
    state, first, to = report["state"], report["from"], report["to"]
    if state == "tampered":
        return _broken(report)
    if state == "not-complete":
        return _("Not complete: #%(first)d to #%(to)d are intact, and the rest was not read") % {
            "first": first,
            "to": to,
        }
    if state == "verified-unsealed-tail":
        sealed = to - report["unsealed"]
        if sealed >= first:
            return _("Intact. Anchored up to #%(sealed)d, not yet after") % {"sealed": sealed}
        return _("Intact up to #%(n)d, not anchored yet") % {"n": to}
    if state == "erased-attested":
        words = ngettext(
            "Intact up to #%(n)d; %(erased)d payload was erased, and that is on record",
            "Intact up to #%(n)d; %(erased)d payloads were erased, and that is on record",
            report["erased"],
        )
        return words % {"n": to, "erased": report["erased"]}
    if state in ("verified", "unanchored"):
        return f"{chain_badge(state).words}, " + _("up to #%(n)d") % {"n": to}
    return str(chain_badge(state).words)


def _broken(report: Report) -> str:
    bad = report["firstBad"]
    place = {"n": bad["sequence"], "run": bad["runId"]}
    if bad["runId"] == report["runId"]:
        return _("Broken at entry #%(n)d") % place
    if bad["class"] in OF_THE_SEALS:
        return _("Not vouched for: the log of seals is broken from leaf %(n)d on") % place
    return _("Broken at entry #%(n)d of the run %(run)s") % place


def proves(report: Report) -> list[str]:
    """What may be said on the strength of it."""
    state, place = report["state"], {"first": report["from"], "to": report["to"]}
    if state == "tampered":
        return _proved_of_damage(report)
    if state == "nothing-to-verify":
        return [_("It proves nothing: no entry was read.")]
    said = [
        _(
            "It proves that the stored entries #%(first)d to #%(to)d are, byte for byte, what the chain of hashes says, in "
            "this order, with none missing in between."
        )
        % place
    ]
    if report["erased"]:
        said = [
            _(
                "It proves that entries #%(first)d to #%(to)d stand in this order with none missing in between, and that those "
                "with their payload are, byte for byte, what the chain of hashes says."
            )
            % place
        ]
    sealed = report["to"] - report["unsealed"]
    if sealed >= report["from"]:
        said.append(
            _(
                "Up to #%(sealed)d they are also what the signed checkpoints say, with nothing cut off."
            )
            % {"sealed": sealed}
        )
    return said


def _proved_of_damage(report: Report) -> list[str]:
    bad, first = report["firstBad"], report["from"]
    if bad["runId"] != report["runId"]:
        return [
            _(
                "It proves that the log of seals is not what was signed or anchored. Nothing holds the entries of this run "
                "against what they once were."
            )
        ]
    said = [
        _(
            "It proves that what is stored of this run is not what was written: entry #%(n)d is the first place that shows it."
        )
        % {"n": bad["sequence"]}
    ]
    if bad["sequence"] > first:
        before = {"first": first, "n": bad["sequence"] - 1}
        said.append(
            _(
                "Entries #%(first)d to #%(n)d agree with each other and with what was sealed of them."
            )
            % before
        )
    return said


def does_not_prove(report: Report) -> list[str]:
    """What it leaves open: by its state."""
    state = report["state"]
    if state == "tampered":
        return [
            _(
                "It does not prove that what comes after is right or wrong: the first bad place is named, and others may "
                "follow. Nor does it say who changed it, when, or what stood there before."
            )
        ]
    if state == "nothing-to-verify":
        return []
    left = []
    if state == "not-complete":
        left.append(_("It says nothing of the entries that were not read."))
    if report.get("unprotected"):
        left.append(
            _(
                "It does not prove what erased entries of version 1 say of themselves: the table of figures names what nothing "
                "vouches for."
            )
        )
    elif report["erased"]:
        left.append(
            _("It does not show what erased payloads said: only that they were erased on record.")
        )
    if report["unsealed"]:
        words = ngettext(
            "It does not prove by itself that nothing was cut off at the end, nor that nobody with full power over the "
            "database computed a new chain for the last entry, which no signed checkpoint covers yet.",
            "It does not prove by itself that nothing was cut off at the end, nor that nobody with full power over the "
            "database computed a new chain for the last %(n)d entries, which no signed checkpoint covers yet.",
            report["unsealed"],
        )
        left.append(words % {"n": report["unsealed"]})
    if state == "unanchored":
        left.append(
            _(
                "The signed checkpoints are not in the anchor file outside the database yet: whoever holds the database and the"
                " signing key could have made others."
            )
        )
    else:
        left.append(
            _(
                "This server says it of itself. Whoever must not trust it takes the evidence bundle, with the anchor file or a "
                "witness's word from elsewhere."
            )
        )
    return left


@dataclass(frozen=True, slots=True)
class Outside:
    """Entries of the run that the report is not about: before it, after it and there already, and those that came since.

    `there` is None where the report does not say how long the run was.
    """

    before: int
    there: int | None
    since: int
    after: int

    @property
    def asked_less(self) -> int:
        return self.before + (self.there or 0)


def outside(report: Report, next_sequence: int | None) -> Outside:
    """`next_sequence`: the run's now; None for a run that is gone."""
    to = report["to"]
    after = max(0, next_sequence - 1 - to) if next_sequence is not None else 0
    known = report.get("runTo")
    if known is None and report["state"] != "not-complete":
        known = to  # it was read to its end
    if known is None:
        return Outside(report["from"], None, 0, after)
    there = max(0, min(known - to, after))
    return Outside(report["from"], there, after - there, after)
