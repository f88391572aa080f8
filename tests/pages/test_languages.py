"""A reader chooses the language of the pages, of those that the installation has a catalogue for."""

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.builders import TenantKit
from tests.pages.people import person, text_of

CATALOGUES = {
    "de": {"Settings": "Einstellungen", "Saved.": "Gespeichert."},
    "ar": {"Settings": "الإعدادات"},
}


def catalogue(words: dict[str, str]) -> bytes:
    """A compiled catalogue, as `msgfmt` makes it."""
    texts = {"": "Content-Type: text/plain; charset=UTF-8\n", **words}
    pairs = [(key.encode(), texts[key].encode()) for key in sorted(texts)]
    at, table, body = 28 + 16 * len(pairs), ([], []), b""
    for side in (0, 1):
        for pair in pairs:
            table[side].extend((len(pair[side]), at + len(body)))
            body += pair[side] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    return head + struct.pack(f"<{4 * len(pairs)}I", *table[0], *table[1]) + body


@pytest.fixture
def translated(tmp_path: Path, settings: Any) -> None:
    for code, words in CATALOGUES.items():
        folder = tmp_path / code / "LC_MESSAGES"
        folder.mkdir(parents=True)
        (folder / "django.mo").write_bytes(catalogue(words))
    settings.LOCALE_PATHS = [tmp_path]


def chosen(language: str) -> dict[str, str]:
    return {"time_zone": "", "theme": "", "language": language}


@pytest.mark.usefixtures("translated")
def test_a_reader_has_the_pages_in_the_language_they_chose_and_others_in_theirs(
    acme: TenantKit,
) -> None:
    ann, bob = person(acme, "person", subject="ann"), person(acme, "person", subject="bob")
    assert '<option value="de">Deutsch</option>' in ann.get("settings/").content.decode()
    assert ann.post("settings/", chosen("de")).status_code == 302
    page = ann.get("settings/").content.decode()
    assert '<html lang="de" dir="ltr"' in page
    assert "<h1>Einstellungen</h1>" in page
    assert "Gespeichert." in page
    assert "<h1>Settings</h1>" in bob.get("settings/").content.decode()
    ann.post("settings/", chosen(""))
    assert '<html lang="en"' in ann.get("settings/").content.decode()


@pytest.mark.usefixtures("translated")
def test_a_language_that_runs_from_right_to_left_turns_the_page(acme: TenantKit) -> None:
    ann = person(acme, "person", subject="ann")
    ann.post("settings/", chosen("ar"))
    assert '<html lang="ar" dir="rtl"' in ann.get("settings/").content.decode()


def test_a_language_without_a_catalogue_is_neither_offered_nor_taken(acme: TenantKit) -> None:
    ann = person(acme, "person", subject="ann")
    assert 'value="de"' not in ann.get("settings/").content.decode()
    assert ann.post("settings/", chosen("de")).status_code == 422


def test_a_chosen_language_that_went_away_gives_the_usual_one(
    acme: TenantKit, translated: None, settings: Any, tmp_path: Path
) -> None:
    ann = person(acme, "person", subject="ann")
    ann.post("settings/", chosen("de"))
    settings.LOCALE_PATHS = [tmp_path / "nothing"]
    assert "Settings" in text_of(ann.get("settings/"))
