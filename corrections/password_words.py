"""Which passwords say too much of where they are used: those that are little more than words which anybody tries here first.

The words: the product's and its roles', the parts of the person's address, and of the names of their workspaces. What is left of
a password without them must be long enough by itself.
"""

import re
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection
from django.utils.translation import gettext as _

WORDS = ("kindmem", "password", "memory", "workspace", "operator", "auditor", "admin", "owner")
SHORTEST = 4
"""Parts that are shorter are in many words."""
LEFT = 8
"""How many characters must be left."""


class KnownWordsValidator:
    """One of Django's AUTH_PASSWORD_VALIDATORS."""

    def validate(self, password: str, user: Any = None) -> None:
        left = whole = password.casefold()
        for word in sorted({*WORDS, *_words_of(user)}, key=len, reverse=True):
            left = left.replace(word, "")
        if left != whole and len(left) < LEFT:
            raise ValidationError(self.get_help_text(), code="password_of_known_words")

    def get_help_text(self) -> str:
        return _(
            "Your password must be more than your address, your workspace's name and words like password or memory."
        )


def _words_of(user: Any) -> Iterator[str]:
    if user is None:
        return
    names = [str(user.email)]
    if user.pk is not None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT slug FROM memberships_of(%s::int)", [user.pk])
            names += [slug for (slug,) in cursor.fetchall()]
    for name in names:
        yield from (part for part in re.split(r"[\W_]+", name.casefold()) if len(part) >= SHORTEST)
