"""The operator's commands and make's targets are there, by the names and with the options that are promised."""

import re

import pytest
from django.core.management import get_commands

from tests.completeness.sources import ROOT
from tests.completeness.test_operating_docs import OURS, options

PROMISED = {
    "up": {"--port", "--demo", "--no-demo"},
    "create_tenant": {"--name"},
    "create_member": {"--role", "--subject", "--password-stdin"},
    "declare_type": set(),
    "create_api_key": {
        *("--name", "--role", "--all", "--projects", "--orgs", "--users", "--participants"),
        *("--threads", "--on-behalf-of", "--may", "--expires-days"),
    },
    "revoke_api_key": set(),
    "rotate_keys": set(),
    "verify_log": {"--run", "--sql"},
    "seal": set(),
    "export_evidence": {"--run", "--out"},
    "restore_epoch": {"--reason"},
    "sweep_retention": {"--dry-run"},
    "refresh_stale": set(),
    "reindex": {"--type", "--model"},
    "export_subject": {"--out"},
    "import_records": {"--dry-run"},
    "import_runs": {"--run-prefix"},
    "citus_plan": set(),
    "doctor": set(),
    "work": set(),
}
_MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_command_is_there_with_its_options(name: str) -> None:
    assert name in OURS, sorted(get_commands())
    assert PROMISED[name] <= options(name)


@pytest.mark.parametrize("target", ["up", "test", "test-all", "lint", "bench", "faults"])
def test_a_target_of_make_installs_first_when_needed(target: str) -> None:
    line = re.search(rf"^{target}:(.*)$", _MAKEFILE, re.MULTILINE)
    assert line is not None
    assert {"install", "install-dev"} & set(line[1].split())


def test_what_is_installed_is_pinned_by_hash() -> None:
    install = (ROOT / ".ci" / "install").read_text("utf-8")
    assert "--require-hashes" in install
    for lock in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / lock).read_text("utf-8").replace("\\\n", " ")
        pinned = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
        assert pinned
        assert [line for line in pinned if "==" not in line or "--hash=sha256:" not in line] == []
