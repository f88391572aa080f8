"""Prints what admission, canonical text and chain verification cost here: no test, no threshold.

    python -m tests.integrity.figures

Best of several rounds, in processor time, since other work on the machine must not count.
"""

import json
import time
from collections.abc import Callable

import rfc8785

from memory.admission import admit, admit_value
from memory.canonical import canonical
from memory.hashing import ZERO_HASH, content_hash_v1, entry_hash_v1
from memory.integrity.chain import ChainVerifier
from memory.integrity.rows import EntryRow, HeadRow

BODY = {
    "kind": "tool-result",
    "scope": {"tenantId": "acme", "projectId": "p-1", "userId": "u-77"},
    "actor": "tool:crm",
    "payload": {
        "customer": {"id": "c-1029", "name": "Zoë Müller", "tier": "gold", "since": "2024-03-01"},
        "orders": [
            {"id": "o-1", "total": 12.5, "items": 3},
            {"id": "o-2", "total": 99.99, "items": 1},
        ],
        "ok": True,
        "note": "call back after 5 pm, prefers e-mail over phone; see ticket 55-1",
    },
    "causedByLogId": "le-00012",
}
ENTRIES = 50_000


def microseconds(act: Callable[[], object], *, rounds: int = 15, times: int = 2_000) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        for _ in range(times):
            act()
        best = min(best, time.process_time() - started)
    return best / times * 1e6


def long_run() -> list[EntryRow]:
    rows: list[EntryRow] = []
    prev_hash = ZERO_HASH
    for n in range(ENTRIES):
        payload_text = canonical({**BODY["payload"], "n": n})  # type: ignore[dict-item]  # a dict
        scope_text = canonical({"tenantId": "acme", "userId": f"u-{n % 50}"})
        timestamp = f"2026-01-02T03:04:05.{n % 1000:03d}Z"
        entry_hash = entry_hash_v1(
            id=f"le-{n}",
            kind="tool-result",
            run_id="run-1",
            scope_text=scope_text,
            actor="tool:crm",
            payload_text=payload_text,
            prev_hash=prev_hash,
            sequence=n,
            timestamp=timestamp,
        )
        rows.append(
            EntryRow(
                sequence=n,
                id=f"le-{n}",
                kind="tool-result",
                scope_text=scope_text,
                actor="tool:crm",
                timestamp=timestamp,
                payload_text=payload_text,
                payload_salt=None,
                content_hash=content_hash_v1(payload_text),
                prev_hash=prev_hash,
                entry_hash=entry_hash,
                hash_version=1,
                caused_by=None,
                is_erased=False,
            )
        )
        prev_hash = entry_hash
    return rows


def entries_per_second(rows: list[EntryRow]) -> float:
    best = float("inf")
    for _ in range(5):
        verifier = ChainVerifier(tenant_slug="acme", run_id="run-1")
        started = time.process_time()
        for start in range(0, len(rows), 1_000):
            verifier.feed(rows[max(0, start - 1) : start + 1_000])
        report = verifier.finish(
            HeadRow(len(rows), rows[-1].entry_hash, len(rows), rows[-1].prev_hash)
        )
        best = min(best, time.process_time() - started)
        if report.first_bad is not None:
            raise SystemExit(f"the run did not verify: {report.first_bad}")
    return len(rows) / best


def main() -> None:
    data = json.dumps(BODY, ensure_ascii=False).encode()
    odd = {**BODY, "ключ": 2.0}
    print(f"body of {len(data)} bytes")
    figures = {
        "json.loads": lambda: json.loads(data),
        "admit": lambda: admit(data, max_bytes=1 << 20),
        "admit_value": lambda: admit_value(BODY),
        "canonical": lambda: canonical(BODY),
        "canonical, own writer (odd key, integral float)": lambda: canonical(odd),
        "rfc8785.dumps": lambda: rfc8785.dumps(BODY),  # type: ignore[arg-type]  # plain JSON
    }
    for name, act in figures.items():
        print(f"{microseconds(act):8.1f} µs  {name}")
    print(f"{entries_per_second(long_run()):8,.0f} entries/s  chain over stored text")


if __name__ == "__main__":
    main()
