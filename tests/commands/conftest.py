"""What tests of commands share."""

from pathlib import Path
from typing import Any

import pytest

from kindmem.state import load_or_create


@pytest.fixture
def own_state(tmp_path_factory: pytest.TempPathFactory, settings: Any) -> Path:
    """A state folder that the test may change: the run's keys, copied."""
    folder = tmp_path_factory.mktemp("state")
    for path in filter(Path.is_file, settings.KINDMEM_STATE.directory.iterdir()):
        (folder / path.name).write_bytes(path.read_bytes())
    settings.KINDMEM_STATE = load_or_create(folder)
    return folder
