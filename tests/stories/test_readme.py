"""The README is followed, from the first tenant to a verified run: every command and every request in it does what it says."""

import json
import re
import shlex
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.commands import answered
from tests.completeness.sources import ROOT
from tests.import_runs.test_import_runs import A_RUN
from tests.kindgi.server import served

_TEXT = (ROOT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MANAGE = ".venv/bin/python manage.py "


def section(title: str) -> Iterator[tuple[str, str]]:
    """The language and text of each block under a heading."""
    start = _TEXT.index(f"\n## {title}\n")
    end = _TEXT.find("\n## ", start + 1)
    for found in _BLOCK.finditer(_TEXT[start:end]):
        yield found[1], found[2]


def requests(block: str, variables: dict[str, str]) -> list[dict[str, Any]]:
    """The answers to the curl commands of a block."""
    for name, value in variables.items():
        block = block.replace(f"${name}", value)
    answers = []
    for command in re.split(r"^curl ", block, flags=re.MULTILINE)[1:]:
        words = shlex.split(command.partition("\n.venv")[0])
        assert words[0] == "-s"
        given: dict[str, list[str]] = {}
        for flag, value in zip(words[2::2], words[3::2], strict=True):
            given.setdefault(flag, []).append(value)
        (body,) = given.get("-d") or [None]
        request = urllib.request.Request(words[1], data=body.encode() if body else None)
        for header in given["-H"]:
            request.add_header(*header.split(": ", 1))
        with urllib.request.urlopen(request, timeout=30) as answer:
            answers.append(json.load(answer))
    return answers


def commands(block: str, slug: str) -> list[Any]:
    """The answers of the manage.py commands of a block, for a tenant of another name."""
    lines = [line for line in block.splitlines() if line.startswith(MANAGE)]
    told = []
    for line in lines:
        words = [slug if word == "acme" else word for word in shlex.split(line[len(MANAGE) :])]
        told.append(answered(*words))
    return told


@pytest.mark.usefixtures("live_db")
def test_following_the_readme_leads_to_a_fact_and_a_verified_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slug = f"readme-{tmp_path.name.replace('_', '-')[-20:].strip('-')}"
    ((_, setting_up), (_, exports)) = section("Your own tenant")
    made, key, of_app = commands(setting_up, slug)
    assert slug in made.values()
    assert set(re.findall(r"(\w+)=", exports)) == {"KINDMEM", "TOKEN", "APP"}
    with served() as url:
        variables = {"KINDMEM": url, "TOKEN": key["token"], "APP": of_app["token"]}
        ((_, first),) = section("First fact, with curl")
        fact, found = requests(first, variables)
        assert (fact["version"], fact["trust"]) == (1, "unverified")
        assert [hit["fact"]["id"] for hit in found["results"]] == [fact["id"]]
        assert found["meta"]["exhaustive"] is True

        ((language, code),) = section("The same with the kindgi client")
        assert language == "python"
        code = code.replace("http://localhost:8000", url).replace("kmk_...", key["token"])
        space: dict[str, Any] = {}
        exec(compile(code.replace('"acme"', f'"{slug}"'), "README.md", "exec"), space)
        assert space["hits"].results[0].fact.id == space["fact"].id

        ((_, log),) = section("First run log")
        entry, run = requests(log, variables)
        assert run["data"] == [entry]

        ((_, guessing), (_, correcting)) = section("First memory, and its correction")
        guess, before = requests(guessing, variables)
        assert (before["decision"], before["record_id"]) == ("ask", guess["id"])
        corrected, here, elsewhere = requests(correcting, variables)
        assert (here["decision"], here["value"]) == ("apply", "P-9")
        assert here["record_id"] == corrected["record"]["id"]
        assert (elsewhere["decision"], elsewhere["record_id"]) == ("ask", guess["id"])

        ((_, verify),) = section("Verify it")
        (report,) = requests(verify, variables)
        assert report["state"] == "verified-unsealed-tail"
        assert (report["entries"], report["unsealed"]) == (1, 1)
    answered("seal", slug)
    (verified,) = commands(verify, slug)
    assert verified["state"] == "verified"

    ((_, importing),) = section("Import real runs")
    (tmp_path / "transcripts.jsonl").write_text(json.dumps(A_RUN) + "\n")
    monkeypatch.chdir(tmp_path)
    (imported,) = commands(importing, slug)
    assert imported["runsAdded"] == 1
