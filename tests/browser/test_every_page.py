"""Every page, in both themes, narrow and wide, in both directions: accessible, never wider than the screen, without errors."""

from typing import Any

import pytest
from django.utils import translation

from tests.browser.conftest import Visitor, Windows
from tests.browser.looking import EXPECTED_FAILURES, problems_of
from tests.browser.scenery import scenery
from tests.builders import TenantKit

pytestmark = pytest.mark.browser

NIGHTLY = pytest.mark.full


# Every page is looked at with every change, in one of two ways that differ in all; in each way before a release.
FIRST_HALF, SECOND_HALF, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)


@pytest.mark.parametrize(
    ("theme", "width", "language", "share"),
    [
        pytest.param("light", 1280, "en", FIRST_HALF, id="light-1280-en-one-half"),
        pytest.param("dark", 360, "ar", SECOND_HALF, id="dark-360-ar-other-half"),
        *(
            pytest.param(theme, width, language, ALL, marks=NIGHTLY)
            for theme in ("light", "dark")
            for width in (1280, 360)
            for language in ("en", "ar")
        ),
    ],
)
def test_every_page_is_accessible_and_fits(
    windows: Windows,
    kit: TenantKit,
    settings: Any,
    theme: str,
    width: int,
    language: str,
    share: slice,
) -> None:
    settings.LANGUAGE_CODE = language
    translation.activate(language)
    made = scenery(kit)
    views: dict[int, Visitor] = {}
    found: dict[str, list[str]] = {}
    for name, (reader, path) in list(made.pages.items())[share]:
        if reader.user_id not in views:
            views[reader.user_id] = windows.of(reader, theme=theme, width=width)
        view = views[reader.user_id]
        view.allowed = EXPECTED_FAILURES
        page = view.open(path)
        if problems := problems_of(page, name, theme=theme, width=width, language=language):
            found[name] = problems
    assert not found
