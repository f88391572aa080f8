"""The ways in which a text may be read: what a model would make of it, however it was disguised.

The plain reading is folded (compatibility forms, case, accents of Latin letters, look-alike letters, invisible and bidi
characters). Others are added only where the text gives a reason: letters set apart, words run together as in an id, digits for
letters, a right-to-left override, an encoding that decodes to text. Everything is bounded by the length of the text.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

MOST_CHARACTERS: Final = 65_536
"""What is looked at of one text; records and facts hold no more inline."""
_MOST_DECODED = 8

_LOOK_ALIKES = str.maketrans(
    {
        **dict(zip("аеорсухкнвмтіјѕԁһӏь", "aeopcyxkhbmtijsdhlb", strict=True)),  # Cyrillic
        **dict(zip("αεορυκντιϲ", "aeopukvtic", strict=True)),  # Greek
        **dict(zip("ɑɡɩ", "agi", strict=True)),  # Latin extensions
    }
)
_UNDECOMPOSED = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ß": "ss", "’": "'"})
_LEET = str.maketrans("013457@$", "oieastas")
_WORD = re.compile(r"\w+")
_APART = re.compile(r"(?:\w[ ._\-*]){6,}\w")
_LETTERS = re.compile(r"(?:\w[ ._\-*])+\w")
_BETWEEN_LETTERS = re.compile(r"(?<=\w)[ ._\-*](?=\w)")
# Words as in an id, a key or a path: three or more, with signs between them, or a capital letter at the start of each.
_RUN_ON = re.compile(r"(?<![^\W_])(?=[^\W\d_])[^\W_]++(?:[-_./:+~|,;=#\\]++[^\W_]++){2,}")
_SIGNS = re.compile(r"[-_./:+~|,;=#\\]+")
_HUMPED = re.compile(r"(?<![A-Za-z])[A-Za-z][a-z]++(?:[A-Z][a-z]++){2,}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MIXED = re.compile(r"\b(?=\w{0,40}[a-z])(?=\w{0,40}[0-9])\w+")
_OVERRIDES = re.compile("[\u202d\u202e\u2066\u2067]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){12,}\b")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2}){3,}")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){3,}")
_ROTATED = re.compile(
    r"\b(?:vtaber|qvfertneq|bireevqr|vafgehpgvbaf?|cebzcg|nffvfgnag)\b", re.IGNORECASE
)
_TEXT = re.compile(r"[^\W\d_]{3}\s+[^\W\d_]{2}")
_SCRAMBLED = {
    (word[0], "".join(sorted(word[1:-1])), word[-1]): word
    for word in (
        *("ignore", "disregard", "forget", "override", "bypass", "reveal", "previous", "earlier"),
        *("instruction", "instructions", "guidelines", "system", "prompt", "password", "assistant"),
    )
}


def readings(text: str) -> Iterator[str]:
    """Folded readings of a text, the plain one first."""
    text = text[:MOST_CHARACTERS]
    plain = folded(text)
    yield plain
    if _APART.search(plain):
        yield _closed_up(text)
    if _RUN_ON.search(plain) or _HUMPED.search(text):
        yield _in_words(text)
    if _MIXED.search(plain):
        leet = _MIXED.sub(lambda found: found[0].translate(_LEET), plain)
        if leet != plain:
            yield leet
    if _OVERRIDES.search(text):
        yield plain[::-1]
    for other in _decoded(text):
        yield folded(other)


def folded(text: str) -> str:
    """Case, accents, compatibility forms, look-alikes and invisible characters folded away."""
    if text.isascii():
        small = text.casefold()
    else:
        shown = "".join(one for one in unicodedata.normalize("NFKC", text) if _is_shown(one))
        small = _without_accents(shown.casefold()).translate(_UNDECOMPOSED)
        small = _WORD.sub(_one_script, small)
    return _WORD.sub(_unscrambled, small)


def _is_shown(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind not in ("Cf", "Co", "Cn") and not (kind == "Cc" and character not in "\n\t\r")


def _without_accents(text: str) -> str:
    """Marks on Latin letters go; those of other scripts are part of the letter."""
    kept: list[str] = []
    is_latin = False
    for one in unicodedata.normalize("NFKD", text):
        if unicodedata.combining(one) and is_latin:
            continue
        is_latin = "a" <= one <= "z" or (is_latin and bool(unicodedata.combining(one)))
        kept.append(one)
    return unicodedata.normalize("NFC", "".join(kept))


def _one_script(found: re.Match[str]) -> str:
    """A word that mixes Latin letters with look-alikes of another script is meant to be Latin."""
    word = found[0]
    if word.isascii() or not any("a" <= one <= "z" for one in word):
        return word
    return word.translate(_LOOK_ALIKES)


def _unscrambled(found: re.Match[str]) -> str:
    word = found[0]
    if len(word) < 6:
        return word
    return _SCRAMBLED.get((word[0], "".join(sorted(word[1:-1])), word[-1]), word)


def _closed_up(text: str) -> str:
    """Letters that were set apart, words kept where more than one space was between them."""
    words = [
        _BETWEEN_LETTERS.sub("", one) if _LETTERS.fullmatch(one) else _APART.sub(_joined, one)
        for one in re.split(r"\s{2,}", text)
    ]
    return folded(" ".join(words))


def _in_words(text: str) -> str:
    """Words that were run together, apart."""
    humps = _HUMPED.sub(lambda found: _HUMP.sub(" ", found[0]), text)
    return _RUN_ON.sub(lambda found: _SIGNS.sub(" ", found[0]), folded(humps))


def _joined(found: re.Match[str]) -> str:
    return _BETWEEN_LETTERS.sub("", found[0])


def _decoded(text: str) -> Iterator[str]:
    """What stands in the text in another encoding, where it decodes to words."""
    ways: tuple[tuple[re.Pattern[str], Callable[[str], str | None]], ...] = (
        (_BASE64, _from_base64),
        (_HEX, _from_hex),
    )
    if "&" in text and (other := html.unescape(text)) != text:
        yield other
    if _PERCENT.search(text):
        yield unquote(text, errors="replace")
    if _ESCAPES.search(text):
        yield _ESCAPES.sub(_from_escapes, text)
    if _ROTATED.search(text):
        yield codecs.decode(text, "rot13")
    for pattern, decode in ways:
        for count, found in enumerate(pattern.finditer(text)):
            if count == _MOST_DECODED:
                break
            other_text = decode(found[0])
            if other_text is not None and _TEXT.search(other_text):
                yield other_text


def _from_base64(token: str) -> str | None:
    try:
        body = token.rstrip("=").replace("-", "+").replace("_", "/")
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _from_hex(token: str) -> str | None:
    try:
        return bytes.fromhex(token).decode()
    except (ValueError, UnicodeDecodeError):
        return None


def _from_escapes(found: re.Match[str]) -> str:
    codes = re.findall(r"\\[ux]([0-9a-fA-F]+)", found[0])
    return "".join(chr(int(one, 16)) for one in codes)
