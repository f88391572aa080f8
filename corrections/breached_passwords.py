"""Which passwords became known elsewhere: those whose SHA-1 is in a file that the operator keeps, as lists of breached passwords
are given out: 40 hexadecimal digits a line, in order, whatever follows a colon. The product asks nobody outside.

The file may have a billion lines: it is searched by halves, and nothing of it is kept in memory.
"""

import os
import re
from functools import partial
from hashlib import sha1
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

DIGITS = 40
_LINE = re.compile(rb"[0-9A-Fa-f]{40}(:.*)?\r?\n?", re.DOTALL)
_sha1 = partial(sha1, usedforsecurity=False)  # what the lists are made with; it guards nothing


class BreachedListError(ValueError):
    """KINDMEM_BREACHED_PASSWORDS names no such list; the message says what is wrong."""


class BreachedPasswordValidator:
    """One of Django's AUTH_PASSWORD_VALIDATORS."""

    def validate(self, password: str, user: Any = None) -> None:
        named = settings.KINDMEM_BREACHED_PASSWORDS
        if named and is_listed(Path(named), password):
            raise ValidationError(self.get_help_text(), code="password_breached")

    def get_help_text(self) -> str:
        return _("Your password must not be one that became known elsewhere.")


def check_list(path: Path) -> None:
    """Raises BreachedListError where the beginning of the file is no such list."""
    try:
        with path.open("rb") as file:
            lines = [file.readline(200) for _ in range(2)]
    except OSError as error:
        raise BreachedListError(f"KINDMEM_BREACHED_PASSWORDS: {error}") from error
    digests = [line[:DIGITS].upper() for line in lines if line]
    if not digests or not all(_LINE.fullmatch(line) for line in lines if line):
        raise BreachedListError(f"KINDMEM_BREACHED_PASSWORDS: {path} has no SHA-1 digest a line")
    if digests != sorted(digests):
        raise BreachedListError(f"KINDMEM_BREACHED_PASSWORDS: {path} is not in order")


def is_listed(path: Path, password: str) -> bool:
    """Whether the list has the password's digest."""
    wanted = _sha1(password.encode()).hexdigest().upper().encode()
    with path.open("rb") as file:
        low, high = 0, os.fstat(file.fileno()).st_size
        while low < high:
            # The line is among those that begin at `low` or later, and before `high`.
            middle = (low + high) // 2
            file.seek(max(middle - 1, 0))
            if middle:
                file.readline()
            begins = file.tell()
            if begins >= high:
                high = middle
                continue
            found = file.readline()[:DIGITS].upper()
            if found == wanted:
                return True
            if found < wanted:
                low = file.tell()
            else:
                high = middle
    return False
