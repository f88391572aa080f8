"""Ids in the paths of pages: one segment each, whatever the id holds.

Ids are the callers' own text. A browser takes `.` and `..` out of a path before it asks, and slashes would make an id look like
another page, so anything but a plain word is written as `~` and base64url.
"""

import base64
import re

from django.urls import register_converter

PLAIN = re.compile(r"[A-Za-z0-9_:@-][A-Za-z0-9_.:@-]*")


class AnyId:
    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        if not value.startswith("~"):
            return value
        coded = value[1:]
        return base64.b64decode(
            coded + "=" * (-len(coded) % 4), altchars=b"-_", validate=True
        ).decode()

    def to_url(self, value: str) -> str:
        if PLAIN.fullmatch(value):
            return value
        return "~" + base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


register_converter(AnyId, "any_id")
