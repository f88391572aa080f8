"""What every reveal and export asks and promises: a reason from the known ones, and how long a reveal holds."""

from datetime import timedelta
from typing import Final

from corrections.words import LOOKING_REASONS
from memory.errors import BadInput

HOLDS_FOR: Final = timedelta(minutes=15)
"""For the same reader, so that going back or reloading is no second reveal."""


def check_reason(reason: str) -> None:
    """Raises BadInput for an unknown reason."""
    if reason not in LOOKING_REASONS:
        raise BadInput.at("reason", "must be one of: " + ", ".join(LOOKING_REASONS))
