"""The form that puts another value in a memory's place: what is right, and for which case.

A kind of case is chosen among those that there are; another one is said in a field of its own, is a plain name, and is one of
those that there are where it means the same.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from corrections.forms import ID_MAX, ActForm
from corrections.queries.cases import Kind
from corrections.remembered import case_words
from memory.admission import MAX_INTEGER
from memory.records.bindings import CONTROL_KEYS

OTHER = "*"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_BETWEEN = re.compile(r"[\s_.-]+")


def plain_name(written: str) -> str:
    """What somebody wrote as a kind of case, as one name: `Trip ID` and `trip-id` are `trip_id`."""
    return _BETWEEN.sub("_", written.strip().casefold()).strip("_")


def choices_of(kinds: Sequence[Kind]) -> list[tuple[str, str]]:
    """Each kind in words; where two read alike, with its name."""
    words = [case_words(kind.name) for kind in kinds]
    return [
        (kind.name, word if words.count(word) == 1 else f"{word} ({kind.name})")
        for kind, word in zip(kinds, words, strict=True)
    ]


class FixForm(ActForm):
    """`needs_case`: the memory is bound to no case; `kinds`: those that there are."""

    new_value = forms.CharField(
        label=_("What is right"), max_length=10_000, widget=forms.Textarea(attrs={"rows": 2})
    )
    case_name = forms.ChoiceField(label=_("Kind of case"), required=False)
    case_other = forms.CharField(label=_("Another kind"), required=False, max_length=64)
    case_value = forms.CharField(
        label=_("Which one"), required=False, max_length=200, help_text=_("Such as PUNE-0304.")
    )
    case_of = forms.CharField(widget=forms.HiddenInput, required=False, max_length=ID_MAX)
    field_order = ("new_value", "case_name", "case_other", "case_value", "reason", "expect", "once")

    def __init__(
        self, *args: Any, needs_case: bool = False, kinds: Sequence[Kind] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.needs_case, self.kinds = needs_case, kinds
        if not needs_case:
            del self.fields["case_name"], self.fields["case_other"], self.fields["case_value"]
            return
        other = self.fields["case_other"]
        other.help_text = _now(
            "In a word or two, such as order or trip. Agents know the case only by the same word."
        )
        if not kinds:
            del self.fields["case_name"]
            other.label = _now("Kind of case")
            return
        self.fields["case_name"].choices = [  # type: ignore[attr-defined]  # a choice field
            ("", _now("Choose one")),
            *choices_of(kinds),
            (OTHER, _now("Another kind, which I name below")),
        ]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if self.needs_case:
            given["case"] = self._case(given)
        return given

    def _case(self, given: dict[str, Any]) -> dict[str, Any]:
        """The case named: one binding. Adds an error where there is none."""
        name, other = given.get("case_name", ""), given.get("case_other", "").strip()
        written = given.get("case_value", "").strip()
        if "case_name" in self.errors:
            return {}
        if name not in ("", OTHER) and other:
            self.add_error("case_other", _("You chose a kind above. Leave one of the two empty."))
            return {}
        kind = self._kind(name, other)
        if kind is None or self.errors:
            return {}
        if not written:
            self.add_error("case_value", _("Say which one it is."))
            return {}
        return {kind.name: _number(written) if kind.is_number else written}

    def _kind(self, name: str, other: str) -> Kind | None:
        chosen = next((kind for kind in self.kinds if kind.name == name), None)
        if chosen is not None:
            return chosen
        field = "case_name" if self.kinds and name != OTHER and not other else "case_other"
        if not other:
            self.add_error(
                field, _("Name the case in which this is right, or press “Everywhere” below.")
            )
            return None
        plain = plain_name(other)
        for kind in self.kinds:
            if plain in (plain_name(kind.name), plain_name(case_words(kind.name))):
                return kind
        if plain in CONTROL_KEYS:
            self.add_error("case_other", _("That is no kind of case: it says who asks, or how."))
        elif not _NAME.fullmatch(plain):
            self.add_error(
                "case_other", _("Use plain letters, digits and spaces, and begin with a letter.")
            )
        else:
            return Kind(plain, is_number=False)
        return None


def _number(written: str) -> Any:
    """A number as the cases of this kind have it; anything else as it was written."""
    try:
        value = json.loads(written)
    except ValueError:
        return written
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) <= MAX_INTEGER else written
