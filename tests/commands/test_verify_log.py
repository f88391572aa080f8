"""`verify_log` says a state by the name that docs/integrity.md explains, and in words."""

import re

import pytest
from django.core.management import call_command

from memory.integrity.states import State
from memory.management.commands.verify_log import _WORDS
from tests.builders import TenantKit
from tests.completeness.sources import ROOT


@pytest.mark.parametrize("state", State)
def test_every_state_has_words_and_is_explained(state: State) -> None:
    assert _WORDS[state]
    table = (ROOT / "docs" / "integrity.md").read_text("utf-8")
    assert re.search(rf"^\| `{state.value}` \| ", table, re.M)


def test_the_run_and_the_tenant_are_said_by_the_name_of_their_state(
    acme: TenantKit, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {"n": 1}}
    client = acme.client("agent", projects=["p1"])
    assert client.post("/v1/memory/runs/r/log", entry).status_code == 201
    with pytest.raises(SystemExit) as ended:
        call_command("verify_log", "acme")
    assert ended.value.code == 14
    lines = capsys.readouterr().out.splitlines()
    assert "r: verified-unsealed-tail (intact, not yet sealed), 1 entries, 1 not sealed" in lines
    said = "acme: verified-unsealed-tail (intact, not yet sealed), 2 runs, 2 entries"
    assert lines[-1] == said
