"""How a page is looked at: accessible, no wider than the screen, one heading, its direction; kept as a picture on demand."""

import os
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
EXPECTED_FAILURES = ["status of 4", "status of 5"]
_AXE = Axe()


def problems_of(page: Page, name: str, *, theme: str, width: int, language: str) -> list[str]:
    """What is wrong with the page as it stands. With KINDMEM_SHOTS set, a picture of it goes into that folder."""
    report = _AXE.run(page, options=RULES)
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
    if shots := os.environ.get("KINDMEM_SHOTS"):
        folder = Path(shots)
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(folder / f"{name}-{theme}-{width}-{language}.png"), full_page=True)
    return problems
