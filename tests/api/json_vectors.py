"""JSON texts as bytes that every JSON route is tried with: the public suite, the suite's invalid bytes, and our own.

`must`: "accept", "refuse", or None where the parser may choose. What is refused by the product and accepted by the suite is
named in `STRICTER`, with the rule.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_FOLDER = Path(__file__).parents[1] / "data" / "json-test-suite"

STRICTER = {
    "y_object_duplicated_key.json": "a key may stand once",
    "y_object_duplicated_key_and_value.json": "a key may stand once",
    "y_object_escaped_null_in_key.json": "no U+0000",
    "y_string_null_escape.json": "no U+0000",
    "y_number.json": "no whole number beyond 2^53 - 1, however it is written",
    "y_number_real_capital_e.json": "no whole number beyond 2^53 - 1",
    "y_number_real_exponent.json": "no whole number beyond 2^53 - 1",
    "y_object_extreme_numbers.json": "no whole number beyond 2^53 - 1",
    "y_number_real_fraction_exponent.json": "no whole number beyond 2^53 - 1",
}


@dataclass(frozen=True)
class Vector:
    name: str
    text: bytes
    must: Literal["accept", "refuse"] | None = None


def _of_the_suite() -> list[Vector]:
    told = json.loads(gzip.decompress((_FOLDER / "vectors.json.gz").read_bytes()))
    meaning: dict[str, Literal["accept", "refuse"]] = {"y": "accept", "n": "refuse"}
    found = []
    for one in (*told["parsing"], *told["transform"]):
        must = "refuse" if one["name"] in STRICTER else meaning.get(one["name"].partition("_")[0])
        # A lone surrogate of the JavaScript string, kept as the three bytes that it would be.
        found.append(Vector(one["name"], one["input"].encode("utf-8", "surrogatepass"), must))
    return found


# Files of the suite whose bytes a JavaScript string can't hold.
_INVALID_UTF8 = {
    "i_string_UTF-8_invalid_sequence": b'["\xe6\x97\xa5\xd1\x88\xfa"]',
    "i_string_UTF8_surrogate_U+D800": b'["\xed\xa0\x80"]',
    "i_string_invalid_utf-8": b'["\xff"]',
    "i_string_iso_latin_1": b'["\xe9"]',
    "i_string_lone_utf8_continuation_byte": b'["\x81"]',
    "i_string_not_in_unicode_range": b'["\xf4\xbf\xbf\xbf"]',
    "i_string_overlong_sequence_2_bytes": b'["\xc0\xaf"]',
    "i_string_overlong_sequence_6_bytes": b'["\xfc\x83\xbf\xbf\xbf\xbf"]',
    "i_string_overlong_sequence_6_bytes_null": b'["\xfc\x80\x80\x80\x80\x80"]',
    "i_string_truncated-utf-8": b'["\xe0\xff"]',
    "i_string_UTF-16LE_with_BOM": b"\xff\xfe" + '["\u00e9"]'.encode("utf-16-le"),
    "i_string_utf16BE_no_BOM": '["\u00e9"]'.encode("utf-16-be"),
    "i_string_utf16LE_no_BOM": '["\u00e9"]'.encode("utf-16-le"),
    "i_structure_UTF-8_BOM_empty_object": b"\xef\xbb\xbf{}",
    "n_array_a_invalid_utf8": b"[a\xe5]",
    "n_array_invalid_utf8": b"[\xff]",
    "n_number_invalid-utf-8-in-bigger-int": b"[123\xe5]",
    "n_number_invalid-utf-8-in-exponent": b"[1e1\xe5]",
    "n_number_invalid-utf-8-in-int": b"[0\xe5]\n",
    "n_number_real_with_invalid_utf8_after_e": b"[1e\xe5]",
    "n_object_lone_continuation_byte_in_key_and_trailing_comma": b'{"\xb9":"0",}',
    "n_string_invalid-utf-8-in-escape": b'["\\u\xe5"]',
    "n_string_invalid_utf8_after_escape": b'["\\\xe5"]',
    "n_structure_incomplete_UTF8_BOM": b"\xef\xbb{}",
    "n_structure_lone-invalid-utf-8": b"\xe5",
    "n_structure_UTF8_BOM_no_data": b"\xef\xbb\xbf",
}

_OWN_REFUSED = {
    "BOM before a value": b"\xef\xbb\xbf1",
    "UTF-16 with BOM": '{"a":1}'.encode("utf-16"),
    "UTF-32 with BOM": '{"a":1}'.encode("utf-32"),
    "UTF-7": b'"+AGE-\xff"',
    "CESU-8 pair": b'"\xed\xa0\xbd\xed\xb8\x80"',
    "raw NUL": b'"\x00"',
    "raw NUL after a value": b"1\x00",
    "escaped NUL": b'"a\\u0000b"',
    "escaped NUL in a key": b'{"a\\u0000b":1}',
    "escaped NUL deep": b'[[{"a":["\\u0000"]}]]',
    "lone high surrogate": b'"\\ud800"',
    "lone low surrogate": b'"\\udc00"',
    "lone surrogate in a key": b'{"\\udfff":1}',
    "surrogates in the wrong order": b'"\\udc00\\ud800"',
    "high surrogate twice": b'"\\ud83d\\ud83d\\ude00"',
    "2^53": b"9007199254740992",
    "-2^53": b"-9007199254740992",
    "2^53 with an exponent": b"9007199254740992e0",
    "2^53 as a fraction": b"9007199254740992.0",
    "1e16": b"1e16",
    "2^63": b"9223372036854775808",
    "2^64": b"18446744073709551616",
    "4300 digits": b"1" * 4300,
    "5000 digits": b"1" * 5000,
    "100000 digits": b"1" * 100_000,
    "1e400": b"1e400",
    "-1e400": b"-1e400",
    "exponent of many digits": b"1e" + b"9" * 5000,
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "duplicate keys": b'{"a":1,"a":1}',
    "duplicate keys by an escape": b'{"a":1,"\\u0061":2}',
    "duplicate keys deep": b'[{"x":{"b":1,"c":2,"b":3}}]',
    "depth 100, arrays": b"[" * 100 + b"]" * 100,
    "depth 100, objects": b'{"a":' * 100 + b"1" + b"}" * 100,
    "depth 5000": b"[" * 5000 + b"]" * 5000,
    "depth 100000, open": b"[" * 100_000,
    "depth 50000, objects, open": b'{"a":' * 50_000,
    "single quotes": b"{'a':1}",
    "comment": b"/* no */1",
    "line comment": b"1 // no",
    "trailing comma": b"[1,]",
    "hexadecimal": b"0x10",
    "octal": b"017",
    "plus sign": b"+1",
    "no-break space around": b"\xc2\xa01\xc2\xa0",
    "vertical tab around": b"\x0b1",
    "form feed around": b"\x0c1",
    "line separator around": b"\xe2\x80\xa81",
    "raw newline in a text": b'"a\nb"',
    "raw tab in a text": b'"a\tb"',
    "full-width digits": "１２".encode(),
    "two values": b"1 2",
    "undefined": b"undefined",
    "True": b"True",
    "JSON lines": b"1\n2",
    "XML": b"<a/>",
    "YAML": b"a: 1",
    "form": b"a=1&b=2",
}
_OWN_ACCEPTED = {
    "2^53 - 1": b"9007199254740991",
    "-(2^53 - 1)": b"-9007199254740991",
    "smallest subnormal": b"5e-324",
    "underflow to zero": b"1e-400",
    "minus zero": b"-0",
    "minus zero as a fraction": b"-0.0",
    "many fraction digits": b"0." + b"1" * 300,
    "noncharacter U+FFFF": b'"\\uffff"',
    "noncharacter U+FFFE, raw": b'"\xef\xbf\xbe"',
    "last code point": b'"\xf4\x8f\xbf\xbf"',
    "emoji as a pair": b'"\\ud83d\\ude00"',
    "emoji, raw": '"😀"'.encode(),
    "family with joiners": '"👨‍👩‍👧‍👦"'.encode(),
    "right to left with overrides": '"\u202eabc\u202c שלום"'.encode(),
    "zero width": '"a\u200b\u200c\u200d\ufeffb"'.encode(),
    "combining marks": ('"' + "e" + "\u0301" * 500 + '"').encode(),
    "normal forms are two keys": '{"\u00e9":1,"e\u0301":2}'.encode(),
    "empty key": b'{"":1}',
    "prototype keys": b'{"__proto__":1,"constructor":2,"toString":3}',
    "delete and C1 controls": b'"\x7f\xc2\x80\xc2\x9f"',
    "escaped controls": b'"\\u0001\\u001f\\b\\f\\n\\r\\t"',
    "solidus both ways": b'"\\/ /"',
    "depth 20": b"[" * 20 + b"]" * 20,
    "white space around": b" \t\r\n 1 \t\r\n ",
    "10000 small numbers": b"[" + b",".join([b"7"] * 10_000) + b"]",
    "SQL": b'"\'; DROP TABLE fact; --"',
    "HTML": b'"<script>alert(1)</script>"',
    "format strings": b'"%s %(tenant)s {0} $1 \\\\ %"',
    "backslashes": b'"\\\\\\\\\\\\"',
    "PostgreSQL casts": b'"1::uuid; {1,2}"',
}


def vectors() -> list[Vector]:
    meaning: dict[str, Literal["accept", "refuse"]] = {"n": "refuse", "i": "refuse"}
    return [
        *_of_the_suite(),
        *(
            Vector(f"{name} (bytes)", text, meaning[name[0]])
            for name, text in _INVALID_UTF8.items()
        ),
        *(Vector(name, text, "refuse") for name, text in _OWN_REFUSED.items()),
        *(Vector(name, text, "accept") for name, text in _OWN_ACCEPTED.items()),
    ]
