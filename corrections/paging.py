"""Lists whose whole state is in the address: what is kept from link to link, and which filters are on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest

from corrections.addresses import address
from corrections.filters import FilterForm

__all__ = ["Chip", "address", "chips", "place_of", "posted"]


@dataclass(frozen=True, slots=True)
class Chip:
    """One filter that is on, and the address without it. `refusal`: why it can't be one, where it can't."""

    label: str
    value: str
    without_url: str
    refusal: str = ""


def place_of(request: HttpRequest) -> str | None:
    """After which id the list goes on, as its own links say; whatever is no id begins at the start."""
    try:
        return str(UUID(request.GET.get("after", "")))
    except ValueError:
        return None


def posted(request: HttpRequest) -> Any:
    """What a form is bound to: what was sent, or nothing."""
    return request.POST if request.method == "POST" else None


def chips(
    request: HttpRequest, form: FilterForm, *, position: tuple[str, ...] = ("after", "before")
) -> list[Chip]:
    """The filters that are on, in words."""
    found = []
    for name, value in form.wanted().items():
        field = form.fields[name]
        words = str(value)
        if isinstance(field, forms.ChoiceField):
            words = str(_choices(field).get(value, value))
        without = address(request, drop=(name, *position))
        found.append(Chip(str(field.label), words, without))
    for name, (value, why) in form.refused().items():
        without = address(request, drop=(name, *position))
        found.append(Chip(str(form.fields[name].label or name), value[:80], without, why))
    return found


def _choices(field: forms.ChoiceField) -> Mapping[Any, Any]:
    return dict(field.choices)  # type: ignore[arg-type]  # flat choices only
