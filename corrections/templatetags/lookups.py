"""Looking up a value by a key that the template holds."""

from collections.abc import Mapping
from typing import Any

from django import template

register = template.Library()


@register.filter
def named(names: Mapping[str, str], writer: Any) -> Any:
    """The writer's name, or the writer as it is."""
    return names.get(writer, writer)
