"""What `make` installs with: where the package index can't be reached it says what to do, and a folder of wheels will do."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.completeness.sources import ROOT

NAME = "kindmem_nowhere_else"
NO_INDEX = "http://127.0.0.1:9/simple"
"""Nobody listens there: the port is the discard service's."""


def wheel(folder: Path) -> str:
    """A package of one module in a wheel; the line of a lock file that names it."""
    about = f"{NAME}-1.0.dist-info"
    contents = {
        f"{NAME}.py": "said = 'installed'\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{name},sha256={digest.decode()},{len(text)}\n"
    contents[f"{about}/RECORD"] = record + f"{about}/RECORD,,\n"
    path = folder / f"{NAME}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return f"{NAME}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """As much of a clone as installing needs, with this environment; what is installed goes elsewhere (PIP_TARGET)."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "install", tmp_path / ".ci" / "install")
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "some.lock").write_text(wheel(tmp_path / "wheels"))
    return tmp_path


def installed(clone: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        [str(clone / ".ci" / "install"), "some.lock"],
        env={
            **kept,
            "PIP_TARGET": str(clone / "target"),
            "PIP_CONFIG_FILE": os.devnull,
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_an_index_it_says_what_to_do(clone: Path) -> None:
    done = installed(clone, PIP_INDEX_URL=NO_INDEX, PIP_RETRIES="0")
    assert done.returncode == 1
    assert "Not all of what some.lock names could be installed" in done.stderr
    for way_out in ("PIP_INDEX_URL=", "PIP_PROXY=", "PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/wheels"):
        assert way_out in done.stderr
    assert not (clone / "target").exists()


def test_a_folder_of_wheels_stands_in_for_the_index(clone: Path) -> None:
    wheels = str(clone / "wheels")
    done = installed(clone, PIP_NO_INDEX="1", PIP_FIND_LINKS=wheels, PIP_INDEX_URL=NO_INDEX)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (clone / "target" / f"{NAME}.py").exists()
