"""The served product, once a test file, for tests that write their bytes themselves.

The test of a full disk mounts a file system, which root may do, and not in every container. Where it can not be, the test is not
collected, and the end of the run says so.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.web_server import Web, gunicorn
from tests.builders import make_tenant


def _may_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return False
        subprocess.run(["umount", folder], check=True)
    return True


collect_ignore = [] if _may_mount() else ["test_disk_full.py"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if collect_ignore:
        terminalreporter.write_line(
            "NOT RUN: tests/faults/test_disk_full.py mounts a small file system, which this user can't do here."
        )


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
