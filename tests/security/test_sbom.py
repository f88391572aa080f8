"""The bill of materials lists every package that the lock names, with its version and each hash; and the check for known holes
says plainly when it could not be made."""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.completeness.sources import ROOT

COMMAND = [sys.executable, str(ROOT / ".ci" / "sbom.py")]


def bill(lock: str = "requirements.lock") -> dict[str, Any]:
    done = subprocess.run([*COMMAND, lock], cwd=ROOT, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def in_lock(name: str) -> dict[tuple[str, str], set[str]]:
    """(name, version) → hashes, read otherwise than the command does."""
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            pinned = line.split(";")[0].split("--hash")[0].strip()
            package, version = pinned.split("==")
            found[package, version.strip()] = set(re.findall(r"sha256:([0-9a-f]{64})", line))
    return found


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_package_is_listed_with_its_version_and_every_hash(lock: str) -> None:
    listed = {
        (one["name"], one["version"]): {each["content"] for each in one["hashes"]}
        for one in bill(lock)["components"]
        if one["type"] == "library"
    }
    assert len(listed) > 50
    assert listed == in_lock(lock)


def test_files_of_others_that_are_kept_here_are_listed_as_they_are() -> None:
    kept = [one for one in bill()["components"] if one["type"] == "file"]
    for one in kept:
        (path,) = [each["value"] for each in one["properties"]]
        assert one["hashes"][0]["content"] == hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
    vendored = {path.name for path in (ROOT / "static" / "vendor").iterdir()} - {"README.md"}
    assert vendored <= {Path(one["properties"][0]["value"]).name for one in kept}


def test_what_needs_what_is_said_of_components_that_are_there() -> None:
    told = bill()
    references = {one["bom-ref"] for one in told["components"]}
    assert len(references) == len(told["components"])
    whole = told["metadata"]["component"]["bom-ref"]
    needs = {one["ref"]: set(one["dependsOn"]) for one in told["dependencies"]}
    assert set(needs) | {whole} >= references - {one for one in references if "pkg:" not in one}
    assert set().union(*needs.values()) == references
    assert any(one.startswith("pkg:pypi/django@") for one in needs[whole])


def test_the_same_lock_gives_the_same_bytes() -> None:
    first, second = (subprocess.check_output(COMMAND, cwd=ROOT) for _ in "12")
    assert first == second
    assert bill()["serialNumber"].startswith("urn:uuid:")
    assert "timestamp" not in first.decode()


# -- make audit ----------------------------------------------------------------------------------

_TOOL = """#!{python}
import sys, json
place = sys.argv[sys.argv.index("--output") + 1]
said = {said!r}
if said is not None:
    open(place, "w").write(json.dumps(said))
print({words!r}, file=sys.stderr)
sys.exit({code})
"""
CLEAN = {"dependencies": [{"name": "django", "version": "5.2.19", "vulns": []}]}
HOLED = {
    "dependencies": [
        {"name": "django", "version": "5.2.0", "vulns": [{"id": "X-1", "fix_versions": ["5.2.1"]}]}
    ]
}


def audited(folder: Path, said: Any, code: int, words: str = "") -> tuple[int, str]:
    """What `.ci/audit` makes of a tool that answers so."""
    tool = folder / "pip-audit"
    tool.write_text(_TOOL.format(python=sys.executable, said=said, code=code, words=words))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        [str(ROOT / ".ci" / "audit")],
        env={**os.environ, "KINDMEM_AUDIT_TOOL": str(tool)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_lock_without_known_holes_passes(tmp_path: Path) -> None:
    code, words = audited(tmp_path, CLEAN, 0)
    assert code == 0
    assert "1 package: no known vulnerability" in words


def test_a_known_hole_fails_and_says_which_version_has_it_no_more(tmp_path: Path) -> None:
    code, words = audited(tmp_path, HOLED, 1)
    assert code == 1
    assert "django 5.2.0: X-1, gone in 5.2.1" in words


@pytest.mark.parametrize("said", [None, {"dependencies": []}])
def test_a_service_that_is_not_reached_is_said_and_fails_nothing(tmp_path: Path, said: Any) -> None:
    code, words = audited(tmp_path, said, 1, "ConnectionError: no route")
    assert code == 0
    assert "NOT CHECKED" in words
    assert "ConnectionError: no route" in words


def test_a_tool_that_can_not_be_installed_is_said_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "audit", tmp_path / ".ci" / "audit")
    shutil.copy(ROOT / "requirements-audit.lock", tmp_path)
    # Its python is one whose pip reaches nothing.
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    made = "mkdir -p .venv/audit/bin; cp .venv/bin/python .venv/audit/bin/python"
    refused = "echo 'No matching distribution found' >&2; exit 1"
    python.write_text(f'#!/bin/sh\nif [ "$2" = venv ]; then {made}; else {refused}; fi\n')
    python.chmod(0o755)
    unset = {name: value for name, value in os.environ.items() if name != "KINDMEM_AUDIT_TOOL"}
    done = subprocess.run(
        [str(tmp_path / ".ci" / "audit")], env=unset, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "NOT CHECKED: pip-audit could not be installed" in done.stdout
    assert "No matching distribution found" in done.stderr
    assert not (tmp_path / ".venv" / "audit" / "stamp").exists()


def test_the_tool_is_installed_by_hash_and_its_lock_names_no_host() -> None:
    text = (ROOT / "requirements-audit.lock").read_text("utf-8")
    assert set(in_lock("requirements-audit.lock")) >= {("pip-audit", "2.10.1")}
    assert all(in_lock("requirements-audit.lock").values())
    assert "://" not in text
