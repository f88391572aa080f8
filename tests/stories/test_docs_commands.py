"""Every block of commands in docs/ is executed, here or by the test that is named; a new block fails until it is one of them."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memory.integrity.cosignatures import witness_key_of
from memory.integrity.timestamps import chosen_authorities
from memory.integrity.witnesses import chosen_witnesses
from tests.builders import TenantKit
from tests.completeness.sources import ROOT
from tests.completeness.test_operating_docs import options
from tests.conftest import test_cluster
from tests.integrity.tsa import Authority
from tests.kindgi.server import served
from tests.stories.test_readme import MANAGE, requests

_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Block = tuple[str, int]


def blocks() -> dict[Block, str]:
    """(page, number) → its text, of every block in a language that runs."""
    found = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for number, block in enumerate(_BLOCK.finditer(path.read_text("utf-8"))):
            found[path.name, number] = block[2]
    return found


_ALL = blocks()
RUN_ELSEWHERE: dict[Block, tuple[str, str]] = {
    ("audit-kit.md", 0): ("tests/records/test_audit_kit_store.py", "audit_kit_store("),
    ("audit-kit.md", 1): ("tests/records/test_audit_kit_store.py", "def test_scope_does_not_bleed"),
    ("operate.md", 1): ("tests/postgres/test_up.py", '"DATABASE_URL": cluster.url("kindmem_app"'),
    ("operate.md", 2): ("tests/commands/test_backup.py", '"backup", "--out"'),
    ("operate.md", 3): ("tests/commands/test_backup.py", '"restore"'),
    ("witness.md", 1): ("tests/integrity/test_witness.py", '"witness"'),
}
"""Block → the test that does what it says, and words by which it is seen to."""


def the_refresh_handler(text: str, **_: Any) -> None:
    customers = {"ann": SimpleNamespace(name="Ann", version="v2"), "away": None}
    space: dict[str, Any] = {"ask_the_crm": lambda uri, timeout: customers[uri]}
    exec(compile(text, "docs/facts.md", "exec"), space)

    def asked(uri: str, version: str | None = None) -> Any:
        return space["crm"](SimpleNamespace(uri=uri, source_version=version), 1.0)

    assert asked("ann").content == {"name": "Ann"}
    assert isinstance(asked("ann", "v2"), space["Unchanged"])
    with pytest.raises(space["RefreshError"]):
        asked("away")


def exported(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"export {name}=")]
    (word,) = shlex.split(line.removeprefix("export "))
    return word.partition("=")[2]


def the_time_stamps(text: str, *, settings: Any, folder: Path, **_: Any) -> None:
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    (extra,) = re.findall(r"^pip install 'kindmem\[(\w+)\]'$", text, re.MULTILINE)
    assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE)
    roots = str(Authority(folder).roots)
    said = exported(text, "KINDMEM_TIMESTAMPS")
    settings.KINDMEM_TIMESTAMPS = said.replace("/etc/kindmem/tsa-roots.pem", roots)
    assert [one.name for one in chosen_authorities()] == ["tsa.example"]


def the_witnesses(text: str, *, settings: Any, **_: Any) -> None:
    said = exported(text, "KINDMEM_WITNESSES")
    key, address = said.split()
    real = witness_key_of(key.partition("+")[0], bytes(range(32))).as_text()
    settings.KINDMEM_WITNESSES = f"{real} {address}"
    assert [one.url for one in chosen_witnesses()] == [address]


def the_bootstrap(text: str, **_: Any) -> None:
    words = shlex.split(text)
    assert words[0] == ".venv/bin/python"
    done = subprocess.run(
        [sys.executable, *words[1:-1], test_cluster().url()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def the_webhook(text: str, *, kit: TenantKit, **_: Any) -> None:
    with served() as url:
        (made,) = requests(text, {"KINDMEM": url, "TOKEN": kit.token("admin")})
    assert made["secret"].startswith("whsec_")
    assert made["events"] == ["record.corrected", "record.forgotten", "review.waiting"]


RUN_HERE: dict[Block, Callable[..., None]] = {
    ("facts.md", 0): the_refresh_handler,
    ("integrity.md", 0): the_time_stamps,
    ("operate.md", 0): the_bootstrap,
    ("webhooks.md", 0): the_webhook,
    ("witness.md", 0): the_witnesses,
}


def test_every_block_is_run_somewhere() -> None:
    assert set(_ALL) == {*RUN_HERE, *RUN_ELSEWHERE}


@pytest.mark.parametrize("block", RUN_HERE, ids=lambda block: f"{block[0]}-{block[1]}")
def test_a_block_does_what_the_page_says(
    block: Block, live_acme: TenantKit, settings: Any, tmp_path: Path
) -> None:
    RUN_HERE[block](_ALL[block], kit=live_acme, settings=settings, folder=tmp_path)


@pytest.mark.parametrize("block", RUN_ELSEWHERE, ids=lambda block: f"{block[0]}-{block[1]}")
def test_the_test_that_runs_a_block_is_there_and_so_are_the_commands_options(block: Block) -> None:
    path, words = RUN_ELSEWHERE[block]
    assert words in re.sub(r"\s+", " ", (ROOT / path).read_text("utf-8"))
    for line in _ALL[block].splitlines():
        if " manage.py " in f" {line}":
            command, *given = shlex.split(line.partition("manage.py ")[2])
            assert {word for word in given if word.startswith("--")} <= options(command)


COMMAND = re.compile(r"`(?:\.venv/bin/python |python )?manage\.py ([a-z_]+)([^`|]*)`")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_a_command_in_a_sentence_is_one_with_these_options(page: Path) -> None:
    for command, rest in COMMAND.findall(page.read_text("utf-8")):
        named = set(re.findall(r"--[a-z-]+", rest))
        assert named <= options(command) | {"--json", "--data-dir"}, (command, named)
    assert MANAGE.startswith(".venv/")
