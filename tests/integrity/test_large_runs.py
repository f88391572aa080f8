"""A run of a million entries is verified in memory that does not grow with it, and one entry's proof stays small.

The rows are made here with right hashes and put in by COPY: appending a million takes longer than a test may.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from memory.access import system_principal
from memory.actions.ask_verification import ask_verification
from memory.actions.run_verifications import run_verifications
from memory.actions.verify_run import sealed_log_of
from memory.actions.verify_tenant import examine_run
from memory.hashing import ZERO_HASH, content_hash_v1, entry_hash_v1, timestamp_text
from memory.integrity.chain_sql import SPAN_ENTRIES
from memory.integrity.examination import RunExamination
from memory.integrity.proof_text import check_inclusion
from memory.integrity.signing import signer
from memory.queries.seal_proofs import run_proof
from memory.queries.verification_jobs import verification_job
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.integrity.logs import seal

RUN = "long"
MOST_GROWTH_BYTES = 100 << 20
PROOF_MOST_BYTES = 4096
PROOF_MOST_SECONDS = 0.02
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def put(superuser_url: str, tenant: TenantKit, count: int) -> None:
    """A run of `count` entries, as an honest product would have stored it."""
    scope = f'{{"projectId":"p1","tenantId":"{tenant.slug}"}}'
    before = prev_hash = ZERO_HASH
    with psycopg.connect(superuser_url) as session:
        session.execute("SET session_replication_role = replica")
        with session.cursor().copy(
            "COPY log_entry (tenant_id, run_id, sequence, id, kind, scope_text, actor, recorded_at, payload_text, content_hash,"
            " prev_hash, entry_hash, hash_version, writer, writer_role) FROM STDIN"
        ) as rows:
            for sequence in range(count):
                at = timestamp_text(START + timedelta(milliseconds=sequence))
                payload = f'{{"n":{sequence},"text":"caf\u00e9"}}'
                before = prev_hash
                entry_hash = entry_hash_v1(
                    id=f"long-{sequence}",
                    kind="tool-call",
                    run_id=RUN,
                    scope_text=scope,
                    actor="agent:a",
                    payload_text=payload,
                    prev_hash=prev_hash,
                    sequence=sequence,
                    timestamp=at,
                )
                rows.write_row(
                    [
                        *(tenant.id, RUN, sequence, f"long-{sequence}", "tool-call", scope),
                        *("agent:a", at, payload, content_hash_v1(payload), prev_hash, entry_hash),
                        *(1, "service:x", "agent"),
                    ]
                )
                prev_hash = entry_hash
        session.execute(
            "INSERT INTO run_head VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(tenant.id, RUN, count, prev_hash, before, count),
                *(START, START + timedelta(milliseconds=count - 1)),
            ],
        )
        session.commit()
        session.autocommit = True
        session.execute("ANALYZE log_entry")


class Memory:
    """The most that this process had in memory while it was watched."""

    def __init__(self) -> None:
        self.start = self.peak = resident()

    @property
    def grown(self) -> int:
        return self.peak - self.start


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def watched() -> Iterator[Memory]:
    memory, is_over = Memory(), threading.Event()

    def watch() -> None:
        while not is_over.wait(0.01):
            memory.peak = max(memory.peak, resident())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_a_long_run_is_verified_in_bounded_memory_and_an_entry_of_it_proven_in_few_bytes(
    live_acme: TenantKit, superuser_url: str, count: int
) -> None:
    put(superuser_url, live_acme, count)
    with watched() as memory:
        assert seal(live_acme).entries >= count
    assert memory.grown < MOST_GROWTH_BYTES, "sealing"

    for in_sql in (False, True):
        out = StringIO()
        with watched() as memory:
            # It ends with 0 and no exit: every entry recomputed, sealed and anchored.
            call_command("verify_log", live_acme.slug, run=RUN, sql=in_sql, stdout=out)
        assert "intact" in out.getvalue()
        assert memory.grown < MOST_GROWTH_BYTES, f"verify_log, in SQL: {in_sql}"

    auditor = live_acme.principal("auditor")
    with tenant_context(live_acme.id):
        job = ask_verification(principal=auditor, run_id=RUN)
    verifier = system_principal(live_acme.id, live_acme.slug, id="verifier")
    with watched() as memory:
        while run_verifications(verifier):
            continue
    assert memory.grown < MOST_GROWTH_BYTES, "the worker's job"
    with tenant_context(live_acme.id):
        done = verification_job(auditor, job.id)
    assert (done.status, done.state, done.entries_done) == ("done", "verified", count)

    took = []
    with tenant_context(live_acme.id):
        # Many, of which the quickest counts: others may have the machine meanwhile.
        for sequence in (0, count - 1, *range(1, count, count // 20)):
            began = time.perf_counter()
            proof = run_proof(auditor, RUN, sequence=sequence)
            took.append(time.perf_counter() - began)
            assert check_inclusion(proof.text, signer().public_keys).sequence == sequence
            assert len(proof.text.encode()) <= PROOF_MOST_BYTES
    assert min(took) <= PROOF_MOST_SECONDS
    with connection.cursor() as cursor, tenant_context(live_acme.id):
        # Closed: the worker's jobs in other tests have no business with a million entries.
        cursor.execute("UPDATE tenant SET closed_at = now() WHERE id = %s::uuid", [live_acme.id])


def test_the_verifier_in_sql_stops_and_goes_on_in_another_transaction(
    live_acme: TenantKit, superuser_url: str
) -> None:
    put(superuser_url, live_acme, 25_000)
    seal(live_acme)
    auditor = live_acme.principal("auditor")
    with tenant_context(live_acme.id), connection.cursor() as cursor:
        examination = RunExamination(
            cursor,
            tenant_id=live_acme.id,
            tenant_slug=live_acme.slug,
            run_id=RUN,
            sealed_log=sealed_log_of(cursor, auditor),
        )
    with pytest.raises(RuntimeError, match="not read to its end"):
        examination.report_in_sql()
    turns, is_over = 0, False
    while not is_over:
        turns += 1
        with tenant_context(live_acme.id), connection.cursor() as cursor:
            is_over = examination.read_in_sql(cursor, until=0.0)
    assert turns >= 25_000 // SPAN_ENTRIES + 25_000 // 10_000
    assert examination.report_in_sql() == examine_run(principal=auditor, run_id=RUN)
