"""A fact's revisions in words, each with what it changed: for the person, and for those who govern."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from corrections.differences import cut_to, difference, lines_of, within
from corrections.facts_shown import writer_of
from memory.fact_shape import FactView

CONTENT_BYTES, HISTORY_BYTES = 20_000, 45_000
"""How much of a page the content and all the differences together take at most."""


def content_lines(fact: FactView) -> tuple[list[str], bool]:
    """What it says, line by line, as far as a page has room for it; and whether that is not all."""
    lines, is_cut = lines_of(fact.content_text)
    kept, _room = within(lines, CONTENT_BYTES, str)
    return kept, is_cut or len(kept) < len(lines)


def people_of(revisions: Sequence[FactView]) -> list[str | None]:
    """Who wrote, checked and ended them, as `names_of` takes them."""
    return [
        *(one.verified_by or writer_of(one) for one in revisions),
        *(one.invalidated_by for one in revisions),
    ]


def revisions_shown(
    on_page: Sequence[FactView], history: Sequence[FactView]
) -> list[dict[str, Any]]:
    """Those of a page, newest first. history: the page, and where there is more the revision before its last."""
    rows, room = [], HISTORY_BYTES
    for at, one in enumerate(on_page):
        row = _revision(one, history[at + 1] if at + 1 < len(history) else None)
        row["difference"], room = cut_to(row["difference"], room)
        rows.append(row)
    return rows


def _revision(one: FactView, earlier: FactView | None) -> dict[str, Any]:
    """One revision in words, with what it changed."""
    is_first = earlier is None
    is_same = earlier is not None and earlier.content_hash == one.content_hash
    if is_first:
        words = _("Written")
    elif one.verified_by is not None and is_same:
        words = _("Checked: it is right")
    else:
        words = _("Changed")
    return {
        "fact": one,
        "words": words,
        "who": one.verified_by or writer_of(one),
        "is_same": is_same,
        "is_removed": one.invalidation_reason not in (None, "superseded"),
        "is_gone": one.content_text is None and one.content_ref is None,
        "difference": difference(
            None if earlier is None else earlier.content_text, one.content_text
        ),
    }
