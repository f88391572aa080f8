"""Does a text read like an instruction to an agent? Deterministic, without a model, and small enough for every write.

A text is weighed by neighbourhoods, so that a long document of harmless words does not add up. What it catches and misses
is measured (tests/trust): a sieve in front of a person, never the only wall. Source: the contract, "Trust and poisoning".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from memory.trust.instruction_rules import ASCII_RULES, ENOUGH, RULES
from memory.trust.readings import MOST_CHARACTERS, readings

_NEIGHBOURHOOD: Final = 400
"""Characters within which signs add up."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much a text reads like an instruction, and by which rules. 1.0 is enough."""

    weight: float
    rules: tuple[str, ...]

    @property
    def is_instruction(self) -> bool:
        return self.weight >= ENOUGH


_NOTHING = Weighed(0.0, ())


def weigh(text: str) -> Weighed:
    """The heaviest neighbourhood of the heaviest reading."""
    best = _NOTHING
    for reading in readings(text):
        weighed = _weigh_reading(reading)
        if weighed.weight > best.weight:
            best = weighed
        if best.is_instruction:
            break
    return best


def reads_like_instruction(value: Any) -> bool:
    """Whether any text of a JSON value, or all of them together, reads like an instruction."""
    texts = list(_texts(value))
    return any(weigh(text).is_instruction for text in texts) or (
        len(texts) > 1 and weigh("\n".join(texts)).is_instruction
    )


def _weigh_reading(text: str) -> Weighed:
    found: list[tuple[int, float, str]] = []
    for name, weight, pattern in ASCII_RULES if text.isascii() else RULES:
        found += [(match.start(), weight, name) for match in pattern.finditer(text)]
    if not found:
        return _NOTHING
    found.sort()
    best = _NOTHING
    for place, (start, _, _) in enumerate(found):
        near: dict[str, float] = {}
        for position, weight, name in found[place:]:
            if position - start > _NEIGHBOURHOOD:
                break
            near[name] = weight
        total = round(sum(near.values()), 3)
        if total > best.weight:
            best = Weighed(total, tuple(near))
        if best.is_instruction:
            break
    return best


def _texts(value: Any) -> Iterator[str]:
    """Every text of a JSON value, names of members among them, within the bound of one text."""
    left = MOST_CHARACTERS
    waiting = [value]
    while waiting and left > 0:
        one = waiting.pop()
        if isinstance(one, str):
            left -= len(one)
            yield one
        elif isinstance(one, dict):
            for name, part in reversed(one.items()):
                waiting += [part, name]
        elif isinstance(one, list):
            waiting += reversed(one)
