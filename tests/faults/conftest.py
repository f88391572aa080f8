"""The served product, once a test file, for tests that write their bytes themselves."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.web_server import Web, gunicorn
from tests.builders import make_tenant


@pytest.fixture(scope="module")
def web(
    django_db_setup: None,
    django_db_blocker: Any,
    app_conninfo: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Web]:
    may = ["read", "write", "append", "tenant-wide"]
    with django_db_blocker.unblock():
        client, other = (make_tenant().client("admin", may=may) for _ in "12")
    errors = tmp_path_factory.mktemp("web") / "errors"
    with gunicorn(app_conninfo, errors) as port:
        yield Web(port, client, other, errors)


@pytest.fixture
def nothing_unexpected_is_logged(web: Web) -> Iterator[None]:
    yield
    said = web.errors.read_text()
    assert "Traceback" not in said
    assert "unexpected error" not in said
