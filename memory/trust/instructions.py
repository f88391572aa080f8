"""Does a text read like an instruction to an agent? Deterministic, without a model, and small enough for every write.

A text is weighed by neighbourhoods, so that a long document of harmless words does not add up. What it catches and misses
is measured (tests/trust): a sieve in front of a person, never the only wall. Source: the contract, "Trust and poisoning".

Asked about a draft, a change or a form as a whole, it reads every text in it, whatever the field: each of them may be read by a
model later. So a field that is added is read too, unless SAID_ELSEWHERE names it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from memory.trust.instruction_rules import ASCII_RULES, ENOUGH, RULES
from memory.trust.readings import MOST_CHARACTERS, readings

_NEIGHBOURHOOD: Final = 400
"""Characters within which signs add up."""

MOST_IN_ALL: Final = 2 * MOST_CHARACTERS
"""Characters that are read of all texts together; content and values hold half of that."""

SAID_ELSEWHERE: Final = frozenset(
    {"Draft.value_text", "Draft.bindings_text", "Context.text", "FactChange.said"}
)
"""Fields, by class, whose texts another field of it says too."""

# One short word or two, and an id that a server made: nothing by themselves, and most of what is said beside a value.
_SAYS_NOTHING = re.compile(r"[a-z0-9]{0,15}(?:[._@:/-][a-z0-9]{0,15}(?:\.[0-9]{1,4}){0,3})?")
_MADE_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


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
    for piece in _pieces(text):
        for reading in readings(piece):
            weighed = _weigh_reading(reading)
            if weighed.weight > best.weight:
                best = weighed
            if best.is_instruction:
                return best
    return best


def reads_like_instruction(said: Any) -> bool:
    """Whether any text of what was said, or all of them together, reads like an instruction.

    said: a JSON value, or a dataclass of them. What is too long to be read to its end counts as one: it would hide there.
    """
    texts = [text for text in _texts(said) if not _MADE_ID.fullmatch(text)]
    if sum(map(len, texts)) > MOST_IN_ALL:
        return True
    alone = (text for text in texts if not _SAYS_NOTHING.fullmatch(text))
    return any(weigh(text).is_instruction for text in alone) or (
        len(texts) > 1 and weigh("\n".join(texts)).is_instruction
    )


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that are read one by one; what stands across a border is whole in one of them."""
    yield text[:MOST_CHARACTERS]
    for start in range(
        MOST_CHARACTERS - _NEIGHBOURHOOD,
        len(text) - _NEIGHBOURHOOD,
        MOST_CHARACTERS - _NEIGHBOURHOOD,
    ):
        yield text[start : start + MOST_CHARACTERS]


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


def _texts(said: Any) -> Iterator[str]:
    """Every text of it, names of members among them; those that are looked at first stand first."""
    waiting = [said]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            for name, part in reversed([*one.items()]):
                waiting += [part, name]
        elif isinstance(one, list | tuple):
            waiting += reversed(one)
        elif is_dataclass(one) and not isinstance(one, type):
            waiting += reversed(_fields(one))


def _fields(one: Any) -> list[Any]:
    kind = type(one).__name__
    return [
        getattr(one, field.name)
        for field in fields(one)
        if f"{kind}.{field.name}" not in SAID_ELSEWHERE
    ]
