"""A sealer that is killed at any point leaves a log that the next one takes up; no size ever gets two roots.

Every signature that is made is written to a file before it is given out, so what was signed is known also where nothing else
of it survived.
"""

import collections
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from memory.integrity.anchors import anchor_path, read_anchors
from memory.integrity.notes import parse_checkpoint
from memory.integrity.signing import StateSigner
from memory.integrity.states import State
from tests.builders import TenantKit
from tests.integrity.logs import fill, seal, verified_twice

pytestmark = pytest.mark.faults

SEALER = """
import json, os, signal, sys
import django
django.setup()
from django.conf import settings
from django.db import connections
name, tenant, slug, point, signed = sys.argv[1:]
for alias in ("default", "owner"):
    settings.DATABASES[alias]["NAME"] = name
    connections[alias].settings_dict["NAME"] = name
from uuid import UUID
from memory.actions import seal_tenant as module
from memory.integrity.anchors import AnchorWriter
from memory.integrity.seal_log import StoredTree
from memory.integrity.signing import StateSigner

def die(): os.kill(os.getpid(), signal.SIGKILL)

def around(owner, attribute, before=None, after=None):
    call = getattr(owner, attribute)
    def wrapped(*a, **k):
        if point == before: die()
        answer = call(*a, **k)
        if point == after: die()
        return answer
    setattr(owner, attribute, wrapped)

sign = StateSigner.sign
def signing(self, message):
    signature = sign(self, message)
    with open(signed, "a") as file:
        file.write(json.dumps(message.decode()) + "\\n"); file.flush(); os.fsync(file.fileno())
    return signature
StateSigner.sign = signing
around(StoredTree, "append", before="before the leaves", after="leaves written, not committed")
around(module, "sign_and_anchor", before="leaves committed")
around(module, "checkpoint_body", after="root made")
around(StateSigner, "sign", after="signed")
around(AnchorWriter, "add_checkpoint", before="before the anchor", after="anchored")
print(module.seal_tenant(tenant_id=UUID(tenant), tenant_slug=slug).size)
"""
POINTS = [
    "before the leaves",
    "leaves written, not committed",
    "leaves committed",
    "root made",
    "signed",
    "before the anchor",
    "anchored",
]


def killed_at(point: str, tenant: TenantKit, signed: Path) -> int:
    """Run a sealer of its own process that ends there; its exit code."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            SEALER,
            settings.DATABASES["default"]["NAME"],
            str(tenant.id),
            tenant.slug,
            point,
            str(signed),
        ],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "kindmem.settings"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    ).returncode


def goes_on_after(
    points: list[str], tenant: TenantKit, signed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed.write_text("")
    sign = StateSigner.sign

    def signing(self: StateSigner, message: bytes) -> bytes:
        with signed.open("a") as file:
            file.write(json.dumps(message.decode()) + "\n")
        return sign(self, message)

    monkeypatch.setattr(StateSigner, "sign", signing)
    fill(tenant, 3)
    seal(tenant)
    for point in points:
        fill(tenant, 2)
        assert killed_at(point, tenant, signed) == -signal.SIGKILL, point
        # More happens before anybody seals again: what was left is to be finished as it was.
        fill(tenant, 1)
        seal(tenant)
        assert verified_twice(tenant).state is State.VERIFIED, point
    roots = collections.defaultdict(set)
    for line in signed.read_text().splitlines():
        origin, size, root = json.loads(line).strip().split("\n")
        roots[origin, size].add(root)
    assert len(roots) > len(points)
    assert all(len(found) == 1 for found in roots.values())
    anchored = [parse_checkpoint(one.note_text) for one in read_anchors(tenant.slug).checkpoints]
    assert len({note.size for note in anchored}) == len(anchored)


def test_killed_between_leaf_signature_and_anchor_the_next_sealer_goes_on(
    live_acme: TenantKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = ["leaves committed", "signed", "anchored"]
    goes_on_after(points, live_acme, tmp_path / "signed", monkeypatch)


@pytest.mark.full
def test_killed_anywhere_no_size_has_two_roots(
    live_acme: TenantKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on_after(POINTS, live_acme, tmp_path / "signed", monkeypatch)


def test_an_anchor_line_that_a_crash_cut_short_is_passed_over(live_acme: TenantKit) -> None:
    fill(live_acme, 2)
    seal(live_acme)
    path = anchor_path(live_acme.slug)
    with path.open("a") as file:
        file.write('{"at":"2026-01-01T00:00')
    fill(live_acme, 2)
    seal(live_acme)
    assert verified_twice(live_acme).state is State.VERIFIED
    assert len(read_anchors(live_acme.slug).checkpoints) == 2
