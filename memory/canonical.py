"""Canonical JSON text, RFC 8785 (JCS): what is stored is what is hashed.

Most values need no writer of our own: the C encoder with sorted keys already writes JCS when keys
are ASCII and no number needs ECMAScript's notation. One walk over the value proves that it is such
a value; the few others go through the writer below. Tests hold both equal to the `rfc8785` package.
"""

import json
from json.encoder import encode_basestring
from typing import Any, Final

from memory.admission import MAX_INTEGER

# From here to 2^53 repr() of a float that isn't integral has ECMAScript's digits and no exponent.
_REPR_IS_PLAIN_FROM: Final = 1e-4


class NotCanonical(ValueError):
    """The value has no canonical text: it is not JSON, or not I-JSON (RFC 7493)."""


def canonical(value: Any) -> str:
    """Return the RFC 8785 text of a JSON value.

    Integers must be within ±(2^53 − 1), floats finite, strings free of lone surrogates, and every
    value one of the exact JSON types; otherwise raises NotCanonical.
    """
    try:
        text = _encode(value) if _is_plain(value) else _written(value)
    except RecursionError:
        raise NotCanonical("nests too deep") from None
    if not text.isascii() and _has_surrogate(text):
        raise NotCanonical("a string has a lone surrogate")
    return text


def canonical_bytes(value: Any) -> bytes:
    """Return the UTF-8 bytes of `canonical(value)`: what is hashed."""
    return canonical(value).encode("utf-8")


def canonical_string(text: str) -> str:
    """Return the canonical text of one admitted string, quotes included."""
    return encode_basestring(text)


_encode = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
).encode


def _is_plain(value: Any) -> bool:
    """Whether the C encoder writes the value as JCS does. Raises NotCanonical for what has no text.

    Code-point order, which the encoder uses, is UTF-16 order as long as keys are ASCII.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is dict:
        plain = True
        for key, member in value.items():
            if type(key) is not str:
                raise NotCanonical("a key is not a string")
            if not key.isascii():
                plain = False
            if type(member) is not str and not _is_plain(member):
                plain = False
        return plain
    if kind is list:
        plain = True
        for member in value:
            if type(member) is not str and not _is_plain(member):
                plain = False
        return plain
    if kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise NotCanonical("an integer is beyond ±(2^53 − 1)")
        return True
    if kind is float:
        if not float("-inf") < value < float("inf"):
            raise NotCanonical("a number is not finite")
        return _REPR_IS_PLAIN_FROM <= abs(value) <= MAX_INTEGER and not value.is_integer()
    raise NotCanonical("a value is not of a JSON type")


def _written(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is dict:
        keys = sorted(value) if "".join(value).isascii() else sorted(value, key=_utf16_order)
        return "{" + ",".join([_member(key, value[key]) for key in keys]) + "}"
    if kind is list:
        return "[" + ",".join([_written(member) for member in value]) + "]"
    if kind is float:
        return ecmascript_number(value)
    if kind is int:
        return repr(value)
    if value is None:
        return "null"
    return "true" if value else "false"


def _member(key: str, value: Any) -> str:
    text = encode_basestring(value) if type(value) is str else _written(value)
    return encode_basestring(key) + ":" + text


def _utf16_order(key: str) -> bytes:
    # Keys with lone surrogates sort somewhere, and are refused when the text is done.
    return key.encode("utf-16-be", "surrogatepass")


def ecmascript_number(number: float) -> str:
    """Return a finite float as ECMAScript writes it (ECMA-262, Number::toString, radix 10)."""
    if number == 0:
        return "0"
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    # The value is 0.DIGITS × 10^point.
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    if whole == "0":
        point = len(digits) - len(fraction)
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    if 0 < point <= 21:
        if len(digits) <= point:
            return sign + digits.ljust(point, "0")
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = f"e{point - 1:+d}"
    return f"{sign}{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}{power}"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
