"""What falls with an act, in words: said on the form before the act, and in full on a page of its own."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from corrections.queries.falling import SHOWN_MOST, Falls, ends_by_prefix, falls_with
from corrections.remembered import key_words, value_words
from corrections.visit import Visit
from memory.records import fingerprints
from memory.records.record import Record


@dataclass(frozen=True, slots=True)
class Told:
    """`rows`: id, key in words and value of the first ones; `more_url`: where all of them are listed."""

    title: str
    count: int
    rows: list[tuple[str, str, str | None]]
    versions: str
    more_url: str | None


def _correction(n: int) -> str:
    return ngettext(
        "%(n)d more memory stops being used with it: it was derived from it, or is a guess that says the same.",
        "%(n)d more memories stop being used with it: they were derived from it, or are guesses that say the same.",
        n,
    )


def _out_of_date(n: int) -> str:
    return ngettext(
        "%(n)d memory that was derived from it ends with it.",
        "%(n)d memories that were derived from it end with it.",
        n,
    )


def _wrong_person(n: int) -> str:
    return ngettext(
        "%(n)d more memory is set aside with it: it was derived from it, or is a guess that says the same.",
        "%(n)d more memories are set aside with it: they were derived from it, or are guesses that say the same.",
        n,
    )


def _dispute(n: int) -> str:
    return ngettext(
        "%(n)d memory was derived from it: agents ask before they use that one, too.",
        "%(n)d memories were derived from it: agents ask before they use those, too.",
        n,
    )


def _forget(n: int) -> str:
    return ngettext(
        "%(n)d more memory is forgotten with it: it was derived from it, or is a guess that says the same.",
        "%(n)d more memories are forgotten with it: they were derived from it, or are guesses that say the same.",
        n,
    )


def _never_infer(n: int) -> str:
    return ngettext(
        "Besides it, %(n)d memory ends if you choose the widest: a guess of that kind, or derived from one.",
        "Besides it, %(n)d memories end if you choose the widest: guesses of that kind, or derived from one.",
        n,
    )


_TITLES = {
    "out-of-date": _out_of_date,
    "wrong-person": _wrong_person,
    "dispute": _dispute,
    "forget": _forget,
    "never-infer": _never_infer,
}


def told(visit: Visit, record: Record, route: str) -> Told:
    """What the form of a route says of what falls with the record."""
    return in_words(visit, record, route, falls_with(visit.principal, record, route))


def in_words(visit: Visit, record: Record, route: str, falls: Falls) -> Told:
    title = _TITLES.get(route, _correction)(falls.count) % {"n": falls.count}
    versions = ngettext(
        "So is the earlier version of it.", "So are %(n)d earlier versions.", falls.versions
    ) % {"n": falls.versions}
    return Told(
        title=title if falls.count else _("Nothing else falls with it."),
        count=falls.count,
        rows=[(one.id, key_words(one.key), value_words(one.value_text)) for one in falls.shown],
        versions=versions if falls.versions else "",
        more_url=visit.url("falls", record.id, route) if falls.count > SHOWN_MOST else None,
    )


def prefixes_in_words(visit: Visit, record: Record) -> list[tuple[str, Any]]:
    """The choices of what is guessed no more, each with how many memories end."""
    counts = ends_by_prefix(visit.principal, record)
    return [
        (
            one,
            _("%(key)s (%(ends)s)")
            % {
                "key": key_words(one),
                "ends": ngettext("ends %(n)d memory", "ends %(n)d memories", counts.get(one, 0))
                % {"n": counts.get(one, 0)},
            },
        )
        for one in fingerprints.prefixes(record.key)
    ]
