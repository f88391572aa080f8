"""What the documents name is there: files of the repository, and the pages and headings that they link to."""

import re
from pathlib import Path

import pytest

from tests.completeness.sources import PRODUCT, ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_ROOMS = "|".join([*PRODUCT, "tests", "docs", "static", "templates", r"\.ci"])
_PATH = re.compile(rf"`((?:{_ROOMS})/[\w./-]*)`")
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_MADE_LATER = {"docs/benchmarks.md", "corrections/locale/"}
"""By `make bench`, and by who translates the pages."""


def headings(page: Path) -> set[str]:
    """As the addresses that a reader of Markdown makes of them."""
    said = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in said}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = set(_PATH.findall(page.read_text("utf-8"))) - _MADE_LATER
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_page_and_a_heading_of_it(page: Path) -> None:
    for target, heading in _LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not heading or heading in headings(linked), f"{target}#{heading}"
