"""The signs by which a text reads like an instruction to an agent, each with a weight: read from `instruction_rules.txt`.

What people say about themselves is full of imperatives ("send invoices to Graz", "answer me in German"), so an imperative alone
weighs nothing. What weighs: words against earlier instructions, words to the agent about its user, orders to act unasked,
secrets to be told, and the markup of a conversation.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ENOUGH: Final = 1.0
"""The weight that is enough by itself."""

Rule = tuple[str, float, re.Pattern[str]]
_MACRO = re.compile(r"\{([a-z]+)\}")


def _read(path: Path) -> Iterator[Rule]:
    macros: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, second, rest = line.split(maxsplit=2)
        pattern = _MACRO.sub(lambda found: macros[found[1]], rest)
        if name == "let":
            macros[second] = pattern
        else:
            yield name, float(second), re.compile(pattern)


RULES: Final = tuple(_read(Path(__file__).with_suffix(".txt")))
"""(name, weight, pattern). Each counts once in one neighbourhood of a text."""

ASCII_RULES: Final = tuple(rule for rule in RULES if rule[2].pattern.isascii())
"""Those that a text of ASCII alone can meet."""
