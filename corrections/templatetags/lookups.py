"""Looking up words for a value that the template holds."""

from collections.abc import Mapping
from typing import Any

from django import template

from corrections.words import FIELD_LABELS, ROUTE_EFFECTS, ROUTE_LABELS
from memory.records.routes import BUILT_IN, Route

register = template.Library()


@register.filter
def named(names: Mapping[str, str], writer: Any) -> Any:
    """The writer's name, or the writer as it is."""
    return names.get(writer, writer)


@register.filter
def label(route: Route) -> Any:
    """What a route is called: the tenant's own words, else the product's in the reader's language."""
    built_in = BUILT_IN.get(route.name)
    is_reworded = built_in is None or built_in.label != route.label
    return route.label if is_reworded else ROUTE_LABELS[route.name]


@register.filter
def effect(route: Route) -> Any:
    """What a route does, in the tenant's own words where it has some."""
    built_in = BUILT_IN.get(route.name)
    is_reworded = built_in is not None and built_in.description != route.description
    return route.description if is_reworded else ROUTE_EFFECTS.get(route.name, route.description)


@register.filter
def field_words(name: str) -> Any:
    """What a field of a form is called, where only its name is at hand."""
    return FIELD_LABELS.get(name, name.replace("_", " "))
