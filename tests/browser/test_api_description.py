"""The page of the API description works under its policy: it shows the routes, and no browser reports that it broke a rule."""

import pytest

from tests.browser.conftest import Windows
from tests.builders import TenantKit
from tests.pages.people import person

pytestmark = pytest.mark.browser


def test_the_page_shows_the_routes_and_breaks_no_rule(windows: Windows, kit: TenantKit) -> None:
    page = windows.of(person(kit, "admin")).open("/v1/docs")
    page.get_by_role("heading", name="kindmem").wait_for()
    page.get_by_text("/v1/memory/facts/{fact_id}/supersede").first.wait_for()
