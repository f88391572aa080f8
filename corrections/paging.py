"""Lists whose whole state is in the address: what is kept from link to link, and which filters are on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.http import HttpRequest

from corrections.forms import FilterForm


@dataclass(frozen=True, slots=True)
class Chip:
    """One filter that is on, and the address without it."""

    label: str
    value: str
    without_url: str


def address(request: HttpRequest, *, drop: tuple[str, ...] = (), **changed: Any) -> str:
    """This page's address with some parameters changed; None takes one away."""
    kept = {
        name: value
        for name, value in request.GET.items()
        if name not in drop and name not in changed
    }
    kept |= {name: str(value) for name, value in changed.items() if value is not None}
    kept = {name: value for name, value in kept.items() if value != ""}
    return f"{request.path}?{urlencode(kept)}" if kept else request.path


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
    return found


def _choices(field: forms.ChoiceField) -> Mapping[Any, Any]:
    return dict(field.choices)  # type: ignore[arg-type]  # flat choices only
