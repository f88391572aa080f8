"""The committed rule that makes questions with a known answer from recorded agent runs.

The documents are the distinct messages of the runs. A question is a plain sentence around words
of one document: one or two that few documents hold, two that some hold, one that many hold.
Words are told apart by white space and case alone, so the rule knows nothing of the tokeniser
that it is there to judge.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FEW = 5
MANY = 100
MIN_WORDS = 5

TEMPLATES_WITH_TWO_RARE = (
    "What do we know about {rare} and {other}? It had to do with {some} or {more}, and {many}.",
    "Which message was it where {many} came up with {rare}, {other} and also {some} and {more}?",
    "Can you find the one on {some} and {more} that mentions {rare}? I think {other} was there.",
    "I remember something about {other} and {rare}; was it {some}, {more} or {many}?",
)
TEMPLATES_WITH_ONE_RARE = (
    "What did they say about {rare} and the {some}, with {more} and {many}?",
    "Where does it talk of {some} and {more} for {rare}?",
    "Is there anything on {rare}? It was about {many}, {some} and {more}.",
    "Who asked for the {more} when {rare} was mentioned beside {some}?",
)


@dataclass(frozen=True)
class Document:
    name: str
    text: str


@dataclass(frozen=True)
class Question:
    text: str
    answer: str


def documents(runs: Sequence[dict[str, Any]]) -> list[Document]:
    """Every distinct message of at least five words, but the system prompt; first place names it."""
    found: dict[str, Document] = {}
    for run, recorded in enumerate(runs):
        for place, message in enumerate(recorded["traj"]):
            text = message.get("content") or ""
            if message["role"] != "system" and len(_words(text)) >= MIN_WORDS:
                found.setdefault(text, Document(f"{run}/{place}", text))
    return list(found.values())


def questions(runs: Sequence[dict[str, Any]], seed: int, count: int) -> list[Question]:
    """`count` questions, the same for the same runs and seed."""
    chance = random.Random(seed)
    known = documents(runs)
    held_by = Counter(word for document in known for word in {*_words(document.text)})
    made: list[Question] = []
    while len(made) < count:
        document = chance.choice(known)
        words = sorted({*_words(document.text)})
        few = [word for word in words if held_by[word] <= FEW]
        some = [word for word in words if FEW < held_by[word] <= MANY]
        many = [word for word in words if held_by[word] > MANY]
        if not few or len(some) < 2 or not many:
            continue
        chosen = {"rare": chance.choice(few), "many": chance.choice(many)}
        chosen["some"], chosen["more"] = chance.sample(some, 2)
        others = [word for word in few if word != chosen["rare"]]
        templates = TEMPLATES_WITH_ONE_RARE
        if others and chance.random() < 0.5:
            chosen["other"] = chance.choice(others)
            templates = TEMPLATES_WITH_TWO_RARE
        made.append(Question(chance.choice(templates).format(**chosen), document.name))
    return made


def _words(text: str) -> list[str]:
    stripped = (word.strip("\"'.,:;!?*()[]{}-#$") for word in re.split(r"[\s\",]+", text))
    return [word.lower() for word in stripped if word]
