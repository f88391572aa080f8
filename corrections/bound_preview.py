"""A preview binds the press that follows to exactly what was shown: who looked, at what, with which numbers, ten minutes long.

A changed thing needs a fresh look: the press is refused, and the new preview shown.
"""

from collections.abc import Sequence

from django.core import signing

HOLDS_SECONDS = 600
FIELD = "seal"


def seal_of(purpose: str, shown: Sequence[str | int | None]) -> str:
    """The seal of what is shown now."""
    return signing.dumps(list(shown), salt=f"kindmem {purpose}")


def is_still(purpose: str, seal: str, shown: Sequence[str | int | None]) -> bool:
    """Whether the seal was made of just this, a short while ago."""
    try:
        seen = signing.loads(seal, salt=f"kindmem {purpose}", max_age=HOLDS_SECONDS)
    except signing.BadSignature:
        return False
    return bool(seen == list(shown))
