"""The world of two tenants that the tests of every route share, once a module."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.isolation import World, make_world
from tests.api.rows import ROWS


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any, superuser_url: str) -> Iterator[World]:
    with django_db_blocker.unblock():
        made = make_world(superuser_url)
        for make in dict.fromkeys(make for row in ROWS.values() for make in row.ids.values()):
            make(made.theirs)
        yield made
