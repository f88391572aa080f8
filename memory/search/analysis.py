"""What a text is cut into for keyword search: the same lexemes for index and question.

A word is case-folded, stemmed in the tenant's language and freed of accents; whatever holds
digits or joints (an e-mail, `2024-05-20`, `HAT170`, `#W123`, `reservation_id`) is kept whole
besides its parts, because people ask for both. Scripts written without spaces become single
characters and pairs. PostgreSQL's own parser reads a date as `2024 -05 -20`, so none of this is
left to it. Everything is bounded: no text makes the index fail or fills it.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

from memory.search.function_words import FUNCTION_WORDS

MAX_TEXT_CHARS = 65_536
MAX_QUESTION_CHARS = 8_000
MAX_DISTINCT_LEXEMES = 4_000
MAX_QUESTION_LEXEMES = 64
MAX_LEXEME_BYTES = 80
# A longer lexeme is this much of its beginning and a digest of its first MAX_DIGESTED_CHARS:
# fewer than a question may have, so that the question digests the same.
KEPT_BYTES = 48
MAX_DIGESTED_CHARS = 2_000
MAX_CACHED_CHARS = 32

SIMPLE = "simple"
# PostgreSQL's names; each is also the name of the Snowball algorithm.
LANGUAGES = (
    SIMPLE,
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "danish",
    "dutch",
    "english",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
)


class UnknownLanguage(ValueError):
    """The language is none of LANGUAGES."""


@dataclass(frozen=True)
class Analysis:
    """Lexemes of one text with their counts; `length` is the sum of the counts.

    `truncated` says that the text went past a bound and the rest of it can't be found.
    """

    frequencies: dict[str, int]
    length: int
    truncated: bool


def analyse(text: str, language: str) -> Analysis:
    """Cut a text for the index: at most 4,000 distinct lexemes of at most 80 bytes each.

    Takes any string, lone surrogates and NUL included, and never gives them back. Raises
    UnknownLanguage.
    """
    _require(language)
    lexemes = _lexemes(text, language, limit_chars=MAX_TEXT_CHARS, is_question=False)
    counted = Counter(lexemes)
    if len(counted) <= MAX_DISTINCT_LEXEMES:
        return Analysis(dict(counted), len(lexemes), truncated=len(text) > MAX_TEXT_CHARS)
    kept = dict(islice(counted.items(), MAX_DISTINCT_LEXEMES))
    return Analysis(kept, sum(kept.values()), truncated=True)


def analyse_query(text: str, language: str) -> list[str]:
    """Cut a question: distinct lexemes, any of which is a match, at most 64, in their order.

    Words that only hold a sentence together (`the`, `is`) are left out where something else
    remains: they match nearly every text and cost most of the time. Raises UnknownLanguage.
    """
    _require(language)
    lexemes = dict.fromkeys(
        _lexemes(text, language, limit_chars=MAX_QUESTION_CHARS, is_question=True)
    )
    empty = _function_lexemes(language)
    telling = [lexeme for lexeme in lexemes if lexeme not in empty]
    return (telling or list(lexemes))[:MAX_QUESTION_LEXEMES]


def _require(language: str) -> None:
    if language not in LANGUAGES:
        raise UnknownLanguage(language)


# -- characters ------------------------------------------------------------------------------


def _class_of(characters: Iterator[str]) -> str:
    """A regular-expression class body for code points, as ranges."""
    ranges: list[list[int]] = []
    for character in characters:
        point = ord(character)
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


def _characters(*ranges: tuple[int, int]) -> Iterator[str]:
    return (chr(point) for first, last in ranges for point in range(first, last + 1))


# Vowel signs and the like, which Python's \w leaves out; the blocks where scripts have them.
_MARKS = _class_of(
    character
    for character in _characters((0x300, 0x1FFF), (0x3099, 0x309A), (0xA66F, 0xABFF))
    if unicodedata.category(character) in ("Mn", "Mc")
)
# Accents that are folded away; in other scripts a mark may be a vowel, so it stays.
_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0640\u064b-\u065f\u0670]")
# Controls of direction, joiners, variation selectors, tags: nobody types them in a question.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
# Scripts written without spaces: Han, kana, Hangul, Thai, Lao, Khmer, Myanmar.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001aff0-\U0001b16f\U00020000-\U000323af"
)
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|[\u203c\u2049\u2122\u2139\u2190-\u21ff\u231a-\u23ff\u25aa-\u27bf"
    "\u2934\u2935\u2b00-\u2bff\u303d\u3297\u3299\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_DIGITS = {
    ord(character): str(unicodedata.digit(character))
    for character in _characters((0x660, 0x19DA), (0xA620, 0xABFF))
    if unicodedata.category(character) == "Nd"
}
_JOINTS = r"[-.@/:+'’~&%#=\\]"
_WORD = f"[\\w{_MARKS}]"
_ASCII_TOKEN = re.compile(rf"[#@]?[A-Za-z0-9_]+(?:{_JOINTS}{{1,3}}[A-Za-z0-9_]+)*(?:\+\+|#)?")
_TOKEN = re.compile(rf"[#@]?{_WORD}+(?:{_JOINTS}{{1,3}}{_WORD}+)*(?:\+\+|#)?|{_EMOJI.pattern}")
_PARTS = re.compile(f"(?:(?!_){_WORD})+")
_RUN_OF_UNSPACED = re.compile(f"([{_UNSPACED}][{_UNSPACED}{_MARKS}]*)")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_EDGES = "_-.@/:'’~&%=\\"
_DATE_AND_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})t(\d{2}:\d{2}.*)", re.ASCII)
_GROUPED_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])", re.ASCII)


# -- from text to lexemes --------------------------------------------------------------------


def _lexemes(text: str, language: str, *, limit_chars: int, is_question: bool) -> list[str]:
    text = text[:limit_chars]
    token_pattern = _ASCII_TOKEN
    if not text.isascii():
        # Compatibility forms (full-width letters, ligatures) may grow to 18 times their length.
        text = unicodedata.normalize("NFKC", INVISIBLE.sub("", text))[:limit_chars]
        text = text.translate(_DIGITS)
        token_pattern = _TOKEN
    lexemes: list[str] = []
    for token in token_pattern.findall(text):
        if token.isalpha() and token.isascii():
            lexemes += _letters(token, language)
        elif len(token) <= 2 and not token.isalnum() and _EMOJI.fullmatch(token):
            lexemes.append(token)
        elif not token.isascii() and _RUN_OF_UNSPACED.search(token):
            lexemes += _mixed(token, language, is_question=is_question)
        else:
            lexemes += _jointed(token, language)
    if "," in text:
        lexemes += (found.replace(",", "") for found in _GROUPED_NUMBER.findall(text))
    # A token of nothing but accents folds to nothing.
    return lexemes if token_pattern is _ASCII_TOKEN else list(filter(None, lexemes))


def _mixed(token: str, language: str, *, is_question: bool) -> list[str]:
    """A token with a run in a script without spaces; what stands around it is cut as usual."""
    lexemes: list[str] = []
    for place, run in enumerate(_RUN_OF_UNSPACED.split(token)):
        if place % 2:
            folded = _folded(run.casefold())
            # A question of two characters or more asks for pairs: single ones match too much.
            if not is_question or len(folded) == 1:
                lexemes += folded
            lexemes += map("".join, pairwise(folded))
        elif _PARTS.search(run):
            lexemes += _jointed(run, language)
    return lexemes


def _jointed(token: str, language: str) -> list[str]:
    """A token with joints, digits or letters outside ASCII: the whole of it and its parts."""
    parts = _PARTS.findall(token)
    whole = token.strip(_EDGES)
    if not parts or (len(parts) == 1 and len(parts[0]) == len(whole)):
        return [lexeme for part in parts for lexeme in _part(part, language)]
    if ("'" in whole or "’" in whole) and all(part.isalpha() for part in parts):
        return _apostrophised(whole, parts, language)
    folded = _folded(whole.casefold())
    lexemes = [_bounded(folded)]
    moment = _DATE_AND_TIME.fullmatch(folded)
    if moment is not None:
        date, time = moment.groups()
        lexemes += date, _bounded(time)
        parts = _PARTS.findall(f"{date} {time}")
    for part in parts:
        lexemes += _part(part, language)
    return lexemes


def _apostrophised(whole: str, parts: list[str], language: str) -> list[str]:
    """`john's` as `john`, `don't` as `dont`, `l'avion` as `lavion` and `avion`."""
    if parts[-1] in ("s", "S"):
        parts = parts[:-1]
    lexemes = list(_word("".join(parts).casefold(), language))
    if len(parts) > 1:
        for part in parts:
            if len(part) > 2:
                lexemes += _part(part, language)
    return lexemes


def _part(part: str, language: str) -> tuple[str, ...]:
    if not part.isascii():
        return _word(part.casefold(), language)
    if part.isalpha():
        return _letters(part, language)
    return (_bounded(part.lower()),)


def _letters(token: str, language: str) -> tuple[str, ...]:
    # Long words are nobody's vocabulary; keep them out of the cache.
    if len(token) > MAX_CACHED_CHARS:
        return (_bounded(token.lower()),)
    return _letters_cached(token, language)


@lru_cache(maxsize=32_768)
def _letters_cached(token: str, language: str) -> tuple[str, ...]:
    """ASCII letters: the word, and the words that its humps are (`reservationId`)."""
    lexemes = _stems(token.lower(), language)
    if _HUMP.search(token):
        for hump in _HUMPS.findall(token):
            if len(hump) > 1:
                lexemes += _stems(hump.lower(), language)
    return lexemes


def _word(word: str, language: str) -> tuple[str, ...]:
    if len(word) > MAX_CACHED_CHARS or any(character.isdigit() for character in word):
        return (_bounded(_folded(word)),)
    return _stems(word, language)


@lru_cache(maxsize=32_768)
def _stems(word: str, language: str) -> tuple[str, ...]:
    """The stem without accents, and the stem of the word as typed without accents."""
    stem = _bounded(_folded(_stem(word, language)))
    plain = _folded(word)
    if plain == word:
        return (stem,)
    bare = _bounded(_folded(_stem(plain, language)))
    return (stem,) if bare == stem else (stem, bare)


def _folded(word: str) -> str:
    if word.isascii():
        return word
    return unicodedata.normalize(
        "NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    ).translate(_SAME_LETTERS)


# Letters that NFD does not take apart, or that keyboards of one script write in two ways.
_SAME_LETTERS = str.maketrans(
    {
        "ø": "o",
        "đ": "d",
        "ł": "l",
        "ı": "i",
        "ħ": "h",
        "æ": "ae",
        "œ": "oe",
        "ى": "ي",
        "ی": "ي",
        "ک": "ك",
        "ة": "ه",
        "’": "'",
    }
)


def _bounded(lexeme: str) -> str:
    if len(lexeme) * 4 <= MAX_LEXEME_BYTES:
        return lexeme
    encoded = lexeme[:MAX_DIGESTED_CHARS].encode()
    if len(encoded) <= MAX_LEXEME_BYTES:
        return lexeme
    kept = encoded[:KEPT_BYTES].decode(errors="ignore")
    return f"{kept}~{hashlib.blake2b(encoded, digest_size=12).hexdigest()}"


# -- language --------------------------------------------------------------------------------

_stemmers = threading.local()


def _stem(word: str, language: str) -> str:
    if language == SIMPLE:
        return word
    # A stemmer keeps the word it works on: one for each thread.
    of_thread: dict[str, Any] = _stemmers.__dict__
    if language not in of_thread:
        # Imports all languages at once, 0.4 s: a command that searches nothing need not wait.
        import snowballstemmer

        of_thread[language] = snowballstemmer.stemmer(language)
    return str(of_thread[language].stemWord(word)) or word


@lru_cache(maxsize=len(LANGUAGES))
def _function_lexemes(language: str) -> frozenset[str]:
    return frozenset(
        lexeme
        for word in FUNCTION_WORDS.get(language, "").split()
        for lexeme in _word(word, language)
    )
