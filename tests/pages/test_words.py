"""Every word on a page goes through translation: in a made-up language no plain English is left but what people wrote."""

import re
from typing import Any

import pytest
from django.utils import translation

from tests.browser.scenery import scenery
from tests.builders import TenantKit

_LETTERS = re.compile(r"[A-Za-z]{3,}")
_TRANSLATED = re.compile(r"⟦[^⟦⟧]*⟧")
# Code, moments, and what people and agents wrote, which is set apart as such.
_NOT_OURS = re.compile(
    r"<(script|style|head|code|pre|bdi|time|option|blockquote|ins|del|kbd|textarea)\b.*?</\1>"
    r'|<([a-z]+)\b[^>]*\bdir="auto".*?</\2>'
    r'|<span class="(?:memory-key|hidden-mark)"[^>]*>.*?</span>',
    re.S,
)
_MARKS = re.compile(r'<span class="hidden-mark"[^>]*>')
_RECEIPT = re.compile(r"R(-[0-9A-Z]{4}){3}")
_SPOKEN = re.compile(r'\s(?:aria-label|placeholder|title|alt|data-label|data-copied)="([^"]*)"')
_OWN_WORDS = {
    "kindmem", "sha", "rfc", "utc", "csv", "json", "travel", "seat", "side", "food", "allergy", "menu", "trip", "pune",
    "booker", "example", "com", "http", "https", "hooks",
    "ann", "auditor", "admin", "person", "profile", "notes", "arabic", "long", "word",
}  # fmt: skip
"""The product's name, names of standards, and what the scenery's people and agents are called and talk about."""


@pytest.fixture
def made_up_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each translated text stands between brackets."""

    def marked(text: Any) -> str:
        return f"⟦{text}⟧" if str(text).strip() else str(text)

    def plural(one: str, many: str, number: int) -> str:
        return marked(one if number == 1 else many)

    active = translation._trans  # type: ignore[attr-defined]  # what every kind of gettext asks
    monkeypatch.setattr(active, "gettext", marked, raising=False)
    monkeypatch.setattr(active, "ngettext", plural, raising=False)
    monkeypatch.setattr(active, "pgettext", lambda context, text: marked(text), raising=False)
    monkeypatch.setattr(
        active,
        "npgettext",
        lambda context, one, many, number: plural(one, many, number),
        raising=False,
    )


def untranslated(body: str, own: set[str]) -> set[str]:
    """Words of a page that are neither translated nor somebody's own."""
    spoken = " ".join(_SPOKEN.findall(_MARKS.sub(" ", body)))
    shown = body
    while shown != (shown := _TRANSLATED.sub(" ", shown)):
        pass
    shown = re.sub(r"<[^>]+>", " ", _NOT_OURS.sub(" ", _RECEIPT.sub(" ", shown)))
    while spoken != (spoken := _TRANSLATED.sub(" ", spoken)):
        pass
    words = set(_LETTERS.findall(re.sub(r"&\w+;", " ", f"{shown} {spoken}")))
    return {word for word in words if word.lower() not in own}


def test_no_page_holds_words_that_are_not_translated(
    live_acme: TenantKit, made_up_language: None
) -> None:
    made = scenery(live_acme)
    own = _OWN_WORDS | {live_acme.slug, live_acme.slug.partition("-")[2]}
    found = {}
    for name, (reader, path) in made.pages.items():
        body = reader.get(path).content.decode()
        assert "⟦" in body, name
        if not path.startswith("/operator/"):  # Django's own site has words of its own
            found[name] = untranslated(body, own)
    found = {name: words for name, words in found.items() if words}
    assert not found, "\n".join(f"{name}: {sorted(words)}" for name, words in found.items())


def test_a_plain_word_would_be_found() -> None:
    page = '<h1>⟦Memory of ⟦x⟧⟧</h1><p aria-label="Plain">Bare &amp; <bdi>Own</bdi></p>'
    assert untranslated(page, set()) == {"Plain", "Bare"}
