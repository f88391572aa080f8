"""On paper: what a page proves is there with its whole hashes, and what is for pressing is not."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor, Windows
from tests.browser.scenery import scenery
from tests.builders import TenantKit

pytestmark = pytest.mark.browser

NOT_ON_PAPER = "header nav, .bar-end, form, .pager, .pill, .skip, .filter, button"
PAPER = ("result", "verification-of-all", "evidence", "evidence-exports", "receipt", "entry-revealed",
         "access", "fact-revealed")  # fmt: skip


def on_paper(window: Visitor, path: str) -> Page:
    """The page as it is printed from a dark screen."""
    page = window.open(path)
    page.emulate_media(media="print", color_scheme="dark")
    return page


def shows_whole_hashes(page: Page) -> None:
    """A hash that opens on the screen is open on paper."""
    for digest in page.locator("details.digest").all():
        whole = digest.locator(".whole")
        expect(whole).to_be_visible()
        assert len(whole.inner_text()) == 64


def test_what_is_evidence_is_printed_whole_and_plain(windows: Windows, kit: TenantKit) -> None:
    made = scenery(kit)
    shots = os.environ.get("KINDMEM_SHOTS")
    views: dict[int, Visitor] = {}
    for name in PAPER:
        reader, path = made.pages[name]
        window = views.setdefault(reader.user_id, windows.of(reader, theme="dark"))
        page = on_paper(window, path)
        assert page.locator("h1").is_visible(), name
        expect(page.locator("main >> visible=true").first).to_be_visible()
        left = [
            one.evaluate("one => one.outerHTML.slice(0, 80)")
            for one in page.locator(NOT_ON_PAPER).all()
            if one.is_visible()
        ]
        assert left == [], name
        shows_whole_hashes(page)
        dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert dark in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"), name
        assert page.locator("#tenant").is_visible(), name
        assert page.locator("footer").is_visible(), name
        if shots:
            Path(shots).mkdir(parents=True, exist_ok=True)
            page.pdf(path=str(Path(shots) / f"{name}.pdf"), format="A4")
            page.screenshot(path=str(Path(shots) / f"{name}-print.png"), full_page=True)
