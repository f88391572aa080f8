"""When two facts say the same: the same words in the same order, about the same.

Upper and lower case, spacing, the punctuation of a sentence, invisible characters, English articles and saying it twice make no
difference. Everything else does, because a search must not hide what differs: a figure, a sign, a code's case, a negation, an
ending (`works at`, `worked at`), the order (`from Paris to London`). So does whom it is about: type, containers, subjects, times
of validity, source and blob. A paraphrase is another wording. Vectors have no say: none tells a negation or a number apart.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime

from memory.canonical import canonical
from memory.instants import instant_text
from memory.search.analysis import INVISIBLE

WORDING_BYTES = 16
# A session is no container: what is noted again in the next session is noted again.
_NOT_ABOUT = frozenset({"sessionId", "tenantId"})
_QUOTES = "\"'`“”„‟‘’‚‛«»‹›「」『』"
_BRACKETS = "()[]{}"
_STOPS = ".,;:!…。、，．；：！｡､"


def words_digest(text: str, language: str) -> bytes | None:
    """The digest of a text's words in their order; None for a text without any."""
    words = _words(text)
    telling = _without_articles(words) if language == "english" else words
    said = said_once(telling or words)
    return _digest(said) if said else None


def wording(
    words: bytes | None,
    *,
    type: str,
    scope: Mapping[str, str],
    subjects: Iterable[tuple[str, str]],
    times: Iterable[datetime | None],
    sources: Iterable[str | None],
) -> bytes | None:
    """The digest that facts have in common which say the same about the same; None for a fact without words."""
    if words is None:
        return None
    about = {
        "type": type,
        "scope": {key: value for key, value in scope.items() if key not in _NOT_ABOUT},
        "subjects": [list(subject) for subject in sorted(set(subjects))],
        "times": [instant_text(time) if time is not None else None for time in times],
        "sources": list(sources),
    }
    return _digest([words.hex(), canonical(about)])


def said_once(words: list[str]) -> list[str]:
    """Without what is only said again: a word right after itself, or all of it. Figures that repeat are other figures."""
    if not any(word.isalpha() for word in words):
        return words
    words = [
        word
        for place, word in enumerate(words)
        if not (place and word.isalpha() and word == words[place - 1])
    ]
    # The shortest beginning that the words are a whole number of times.
    # borders[n]: how long the longest proper beginning of the first n + 1 words is that is their end too.
    borders: list[int] = []
    for place, word in enumerate(words):
        border = borders[-1] if borders else 0
        while border and words[border] != word:
            border = borders[border - 1]
        borders.append(border + 1 if place and words[border] == word else 0)
    period = len(words) - borders[-1] if words else 0
    return words[:period] if period and len(words) % period == 0 else words


def _words(text: str) -> list[str]:
    folded = (_folded(word) for word in INVISIBLE.sub("", text).split())
    return [word for word in folded if word]


def _folded(word: str) -> str:
    # Around figures a bracket may be a sign, and a point before one is part of it.
    around = _QUOTES if any(character.isdigit() for character in word) else _QUOTES + _BRACKETS
    bare = word.rstrip(_STOPS + around).lstrip(around)
    if bare.isalpha():
        return unicodedata.normalize("NFKC", bare).casefold()
    return unicodedata.normalize("NFC", bare)


def _without_articles(words: list[str]) -> list[str]:
    """A last `a` names something: `plan A`."""
    return [
        word
        for place, word in enumerate(words)
        if word not in ("the", "an") and not (word == "a" and place < len(words) - 1)
    ]


def _digest(pieces: list[str]) -> bytes:
    # No piece holds a line break.
    return hashlib.blake2b(
        "\n".join(pieces).encode(errors="surrogatepass"), digest_size=WORDING_BYTES
    ).digest()
