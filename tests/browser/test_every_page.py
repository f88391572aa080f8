"""Every page, in both themes, narrow and wide, in both directions: accessible, never wider than the screen, without errors."""

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import translation

from tests.browser.conftest import Visitor, Windows
from tests.browser.scenery import scenery
from tests.builders import TenantKit

pytestmark = pytest.mark.browser

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
EXPECTED_FAILURES = ["status of 403", "status of 404"]
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
    made, axe = scenery(kit), Axe()
    shots = os.environ.get("KINDMEM_SHOTS")
    views: dict[int, Visitor] = {}
    found: dict[str, Any] = {}
    for name, (reader, path) in list(made.pages.items())[share]:
        if reader.user_id not in views:
            views[reader.user_id] = windows.of(reader, theme=theme, width=width)
        view = views[reader.user_id]
        view.allowed = EXPECTED_FAILURES
        page = view.open(path)
        report = axe.run(page, options=RULES)
        problems = [
            f"{one['id']}: {node['html'][:160]}"
            for one in report.response["violations"]
            for node in one["nodes"]
        ]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            problems.append("is wider than the screen")
        if page.locator("h1").count() != 1:
            problems.append("has no single h1")
        if page.locator("html").get_attribute("dir") != ("rtl" if language == "ar" else "ltr"):
            problems.append("has the wrong direction")
        if problems:
            found[name] = problems
        if shots:
            folder = Path(shots)
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(
                path=str(folder / f"{name}-{theme}-{width}-{language}.png"), full_page=True
            )
    assert not found
