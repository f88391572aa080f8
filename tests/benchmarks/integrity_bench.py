"""What verifying, sealing and proving cost. Run: python -m tests.benchmarks.integrity_bench [entries of the large tenant]

Figures are ratios of what ran interleaved; the proof's is in milliseconds.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.harness import database, interleaved, ratio, usual_or_quick

VERIFIED = usual_or_quick(20_000, 1_000)
SEALED = usual_or_quick(100_000, 1_000)
BATCH = 500

_SHA256_ALONE = """
SELECT count(sha256(convert_to(coalesce(payload_text, '') || scope_text || id || kind || run_id, 'UTF8')))
FROM log_entry WHERE tenant_id = %(tenant)s::uuid AND run_id = 'run'
"""

# A tenant as large as is asked for: rows that are only looked up, so their hashes may be made up.
_LARGE = """
INSERT INTO log_entry (tenant_id, run_id, sequence, id, kind, scope_text, recorded_at, payload_text, content_hash, prev_hash,
                       entry_hash, writer, writer_role)
SELECT %(tenant)s::uuid, 'large', n, 'large-' || n, 'tool-call', '{"tenantId":"x"}', now(), '{"n":' || n || '}', sha256('x'),
       sha256(convert_to((n - 1)::text, 'UTF8')), sha256(convert_to(n::text, 'UTF8')), 'service:x', 'agent'
FROM generate_series(0, %(count)s::bigint - 1) n
"""


def appended(tenant: Any, run: str, count: int) -> float:
    """Append entries in batches; the seconds that took."""
    from memory.actions.append_log_entries import append_log_entries
    from memory.ids import new_text_id
    from memory.log_entry import NewEntry
    from memory.tenancy import tenant_context

    principal = tenant.principal("agent", everything=True)
    scope = {"tenantId": tenant.slug, "projectId": "p1"}
    payload = {"name": "search", "arguments": {"from": "LIS", "to": "BER"}, "text": "café " * 40}
    started = time.perf_counter()
    for start in range(0, count, BATCH):
        entries = [
            NewEntry(
                kind="tool-call",
                scope=scope,
                id=new_text_id(),
                actor="agent:b",
                payload={**payload, "n": start + n},
            )
            for n in range(BATCH)
        ]
        with tenant_context(tenant.id):
            append_log_entries(principal=principal, run_id=run, entries=entries)
    return time.perf_counter() - started


def verification() -> dict[str, float]:
    import json

    import rfc8785
    from django.db import connection

    from memory.integrity.chain_sql import verify_run_in_sql
    from memory.integrity.stored_run import read_batch, verify_stored_run
    from memory.tenancy import tenant_context
    from tests.builders import make_tenant

    tenant = make_tenant()
    appended(tenant, "run", VERIFIED)
    key: dict[str, Any] = {"tenant_id": tenant.id, "tenant_slug": tenant.slug, "run_id": "run"}

    def rate(work: Callable[[Any], object]) -> Callable[[], float]:
        def timed() -> float:
            with tenant_context(tenant.id), connection.cursor() as cursor:
                started = time.perf_counter()
                work(cursor)
                return VERIFIED / (time.perf_counter() - started)

        return timed

    def in_sql(cursor: Any) -> None:
        assert verify_run_in_sql(cursor, **key).first_bad is None

    def in_python(cursor: Any) -> None:
        assert verify_stored_run(cursor, **key).first_bad is None

    def recanonicalising(cursor: Any) -> None:
        """A stream that trusts no stored text: parse, write canonically, hash."""
        from hashlib import sha256

        at = 0
        while True:
            rows, _ = read_batch(
                cursor, tenant_id=tenant.id, run_id="run", from_sequence=at, limit=1000
            )
            for row in rows:
                payload = json.loads(row.payload_text or "null")
                assert sha256(rfc8785.dumps(payload)).digest() == row.content_hash
                entry = {
                    "id": row.id,
                    "kind": row.kind,
                    "scope": json.loads(row.scope_text),
                    "runId": "run",
                    "actor": row.actor,
                    "timestamp": row.timestamp,
                    "sequence": row.sequence,
                    "payload": payload,
                    "prevHash": "sha256:" + row.prev_hash.hex(),
                }
                assert sha256(rfc8785.dumps(entry)).digest() == row.entry_hash
            if len(rows) < 1000:
                return
            at = rows[-1].sequence + 1

    def sha256_alone(cursor: Any) -> None:
        cursor.execute(_SHA256_ALONE, {"tenant": tenant.id})

    measured = interleaved(
        {
            "sql": rate(in_sql),
            "python": rate(in_python),
            "recanonicalising": rate(recanonicalising),
            "sha256": rate(sha256_alone),
        }
    )
    return {
        "verify in SQL / a stream that re-canonicalises (want >= 8)": ratio(
            measured, "sql", "recanonicalising"
        ),
        "verify in SQL / sha256 alone in SQL (want >= 0.35)": ratio(measured, "sql", "sha256"),
        "verify in Python / a stream that re-canonicalises": ratio(
            measured, "python", "recanonicalising"
        ),
        "entries a second, in SQL": statistics.median(measured["sql"]),
        "entries a second, in Python": statistics.median(measured["python"]),
    }


def sealing() -> dict[str, float]:
    from memory.actions.seal_tenant import seal_tenant
    from tests.builders import make_tenant

    shares: list[float] = []
    for _ in range(3):
        tenant = make_tenant()
        seconds = appended(tenant, "run", SEALED)
        started = time.perf_counter()
        sealed = seal_tenant(tenant_id=tenant.id, tenant_slug=tenant.slug)
        shares.append((time.perf_counter() - started) / seconds)
        assert sealed.entries >= SEALED
    return {
        "sealing / the batch appends that made the entries (want <= 0.10)": statistics.median(
            shares
        )
    }


def proving(count: int) -> dict[str, float]:
    import secrets

    import psycopg
    from django.conf import settings
    from django.db import connection

    from kindmem.postgres.cluster import Cluster
    from memory.hashing import tag
    from memory.integrity.leaves import MOST_SEALED, record_hash, seal_text
    from memory.integrity.merkle import CompactRange
    from memory.integrity.notes import checkpoint_body, signature_line, signed_note
    from memory.integrity.proof_text import check_inclusion
    from memory.integrity.seal_log import NewLeaf, StoredTree
    from memory.integrity.signing import signer
    from memory.queries.seal_proofs import run_proof
    from memory.tenancy import tenant_context
    from tests.builders import make_tenant

    tenant = make_tenant()
    cluster = Cluster(settings.KINDMEM_DATA_DIR)
    with psycopg.connect(cluster.url(dbname=settings.DATABASES["default"]["NAME"])) as session:
        session.execute("SET session_replication_role = replica")
        session.execute(_LARGE, {"tenant": tenant.id, "count": count})
        hashes = [
            bytes(row[0])
            for row in session.execute(
                "SELECT entry_hash FROM log_entry WHERE tenant_id = %s AND run_id = 'large' ORDER BY sequence",
                [tenant.id],
            )
        ]
    with psycopg.connect(
        cluster.url(dbname=settings.DATABASES["default"]["NAME"]), autocommit=True
    ) as session:
        session.execute("ANALYZE log_entry")
    tree = CompactRange()
    by = signer()
    with tenant_context(tenant.id), connection.cursor() as cursor:
        for start in range(0, count, MOST_SEALED):
            records = [record_hash(hash, 1, None) for hash in hashes[start : start + MOST_SEALED]]
            text = seal_text(
                tenant.slug,
                "large",
                from_sequence=start,
                to_sequence=start + len(records) - 1,
                head_hash=hashes[start + len(records) - 1],
                record_hashes=records,
            )
            StoredTree(cursor, tenant.id).append(tree, [NewLeaf(text, b"".join(records))])
        body = checkpoint_body(f"kindmem/{tenant.slug}", tree.size, tree.root())
        line = signature_line(f"kindmem/{tenant.slug}", by.public_keys[0], by.sign(body.encode()))
        cursor.execute(
            "INSERT INTO checkpoint (tenant_id, size, last_leaf, origin, root_hash, note_text) "
            "VALUES (%s::uuid, %s::bigint, %s::bigint - 1, %s::text, %s::bytea, %s::text)",
            [
                tenant.id,
                tree.size,
                tree.size,
                f"kindmem/{tenant.slug}",
                tree.root(),
                signed_note(body, [line]),
            ],
        )
    principal = tenant.principal("auditor")
    took: list[float] = []
    for _ in range(60):
        sequence = secrets.randbelow(count)
        started = time.perf_counter()
        with tenant_context(tenant.id):
            proof = run_proof(principal, "large", sequence=sequence)
        took.append((time.perf_counter() - started) * 1000)
        proven = check_inclusion(proof.text, by.public_keys)
        assert tag(proven.entry_hash) == tag(hashes[sequence])
    took.sort()
    return {
        f"proof of one of {count} entries, median ms (want <= 20)": statistics.median(took),
        f"proof of one of {count} entries, 95 % ms": took[int(len(took) * 0.95)],
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else usual_or_quick(1_000_000, 3_000)
    with database():
        for measure in (verification, sealing, lambda: proving(count)):
            for name, figure in measure().items():
                print(f"{name:75} {figure:12.3f}", flush=True)


if __name__ == "__main__":
    main()
