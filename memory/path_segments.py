"""Ids in the paths of pages: one segment each, whatever the id holds.

Ids are the callers' own text. A browser takes `.` and `..` out of a path before it asks, also percent-encoded ones, and a slash
would make an id look like another page; so anything but a plain word is written as `~` and base64url (RFC 4648 §5, unpadded).
"""

import base64
import re

_PLAIN = re.compile(r"[A-Za-z0-9_:@-][A-Za-z0-9_.:@-]*")


def segment_of(text: str) -> str:
    """The segment that stands for a text of at least one character; ASCII, and safe in any URL."""
    if _PLAIN.fullmatch(text):
        return text
    return "~" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def text_of(segment: str) -> str:
    """The text that a segment stands for. Raises ValueError for one that stands for none."""
    if not segment.startswith("~"):
        return segment
    coded = segment[1:]
    padded = coded + "=" * (-len(coded) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
