"""Bodies above the common limit are read one at a time by each worker."""

import threading

import pytest

from memory.api import large_bodies
from tests.builders import TenantKit
from tests.records.builders import body_of

ENTRY = {"kind": "tool-call", "scope": {}, "payload": ["x" * 1000] * 60}
LARGE, SMALL = {"entries": [ENTRY] * 20}, {"entries": [ENTRY]}
BATCH = "/v1/memory/runs/r/log/batch"


def test_a_large_body_waits_for_its_turn_and_small_ones_pass_it(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = acme.client("admin")
    monkeypatch.setattr(large_bodies, "PATIENCE_SECONDS", 0.05)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with large_bodies.in_turn(2 << 20):
            held.set()
            let_go.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert held.wait(10)
        refused = client.post(BATCH, LARGE)
        assert body_of(refused, 503)["error"]["code"] == "unavailable"
        assert refused["Retry-After"] == "1"
        body_of(client.post(BATCH, SMALL), 201)
    finally:
        let_go.set()
        other.join()
    body_of(client.post(BATCH, LARGE), 201)
    body_of(client.post(BATCH, LARGE), 201)
