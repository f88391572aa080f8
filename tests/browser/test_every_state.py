"""Every state that a page may be in, looked at as every page is: empty, refused, asked for a proof, signed out, failed."""

from typing import Any

import pytest
from django.core.cache import cache
from django.utils import translation

from tests.browser.conftest import Windows
from tests.browser.looking import EXPECTED_FAILURES, problems_of
from tests.browser.states import reached, states
from tests.builders import TenantKit

pytestmark = pytest.mark.browser

CELLS = [
    (theme, width, language)
    for theme in ("light", "dark")
    for width in (1280, 360)
    for language in ("en", "ar")
]


@pytest.mark.parametrize(
    ("theme", "width", "language", "share"),
    [
        pytest.param("dark", 360, "en", slice(0, None, 8), id="dark-360-en-some"),
        *(pytest.param(*cell, slice(None), marks=pytest.mark.full) for cell in CELLS),
    ],
)
def test_every_state_is_accessible_and_fits(
    windows: Windows,
    kit: TenantKit,
    superuser_url: str,
    settings: Any,
    theme: str,
    width: int,
    language: str,
    share: slice,
) -> None:
    cache.clear()
    settings.LANGUAGE_CODE = language
    translation.activate(language)
    found: dict[str, list[str]] = {}
    for name, state in list(states(kit, superuser_url).items())[share]:
        view = windows.of(state.reader, theme=theme, width=width)
        view.allowed = EXPECTED_FAILURES
        page = reached(view, state)
        if problems := problems_of(page, name, theme=theme, width=width, language=language):
            found[name] = problems
    assert not found
