"""An attacker's hands: full write access to the database, inside one transaction that is rolled back.

Constraints that the tables have are dropped, triggers are off. The verifiers then read through the same
session, so they see what was done and nothing needs repair.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from memory.hashing import ZERO_HASH
from memory.integrity.anchors import origin_of, read_anchors
from memory.integrity.examination import RunExamination
from memory.integrity.merkle import CompactRange
from memory.integrity.notes import checkpoint_body, signature_line, signed_note
from memory.integrity.rows import EntryRow, HeadRow
from memory.integrity.seal_log import StoredTree
from memory.integrity.sealed_log import SealedLog, verify_sealed_log
from memory.integrity.sealing import make_leaves
from memory.integrity.signing import Signer, signer
from memory.integrity.states import ChainReport
from memory.integrity.stored_run import read_batch
from tests.builders import TenantKit
from tests.integrity.attacks import content_hash_of, hash_of

TABLES = ("log_entry", "run_head", "seal_leaf", "checkpoint", "anchor")
Copy = dict[str, tuple[list[str], list[tuple[Any, ...]]]]


class Hands:
    """What somebody with every right in the database can do to one tenant's log."""

    def __init__(
        self, session: psycopg.Connection, tenant: TenantKit, *, keeps_constraints: bool = False
    ) -> None:
        self.tenant = tenant
        self.cursor = session.cursor()
        self.cursor.execute("SET LOCAL session_replication_role = replica")
        if keeps_constraints:
            return
        self.cursor.execute(
            "ALTER TABLE log_entry DROP CONSTRAINT log_entry_pkey, DROP CONSTRAINT log_entry_id_is_unique CASCADE,"
            " DROP CONSTRAINT log_entry_has_one_successor, DROP CONSTRAINT log_entry_erased_has_no_payload,"
            " DROP CONSTRAINT log_entry_hash_version_is_known,"
            " DROP CONSTRAINT log_entry_payload_is_hashed"
        )
        self.cursor.execute("ALTER TABLE run_head DROP CONSTRAINT run_head_counts_every_entry")

    def do(self, statement: str, **parameters: Any) -> int:
        """One statement; `%(t)s` is the tenant. How many rows it touched."""
        self.cursor.execute(statement, {"t": self.tenant.id, **parameters})
        return self.cursor.rowcount

    def rows(self, run: str) -> list[EntryRow]:
        return read_batch(
            self.cursor, tenant_id=self.tenant.id, run_id=run, from_sequence=0, limit=10_000
        )[0]

    def put(self, run: str, rows: list[EntryRow]) -> None:
        """Replace the rows of a run."""
        self.do("DELETE FROM log_entry WHERE tenant_id = %(t)s AND run_id = %(r)s", r=run)
        self.cursor.executemany(
            "INSERT INTO log_entry (tenant_id, run_id, sequence, id, kind, scope_text, actor, recorded_at, payload_text,"
            " payload_salt, content_hash, prev_hash, entry_hash, hash_version, caused_by, payload_erased_at, writer,"
            " writer_role) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
            " CASE WHEN %s THEN now() END, 'service:x', 'agent')",
            [(self.tenant.id, run, *row) for row in rows],
        )

    def put_head(self, run: str, head: HeadRow | None) -> None:
        self.do("DELETE FROM run_head WHERE tenant_id = %(t)s AND run_id = %(r)s", r=run)
        if head is not None:
            self.do(
                "INSERT INTO run_head VALUES (%(t)s, %(r)s, %(n)s, %(h)s, %(p)s, %(c)s, now(), now())",
                r=run,
                n=head.next_sequence,
                h=head.head_hash,
                p=head.prev_hash,
                c=head.entry_count,
            )

    def replace(self, run: str, rows: list[EntryRow], *, head_too: bool = True) -> None:
        """Rows, and a head row that fits them."""
        self.put(run, rows)
        if head_too:
            last = rows[-1] if rows else None
            self.put_head(
                run, last and HeadRow(len(rows), last.entry_hash, len(rows), last.prev_hash)
            )

    def rehashed(self, run: str, rows: list[EntryRow], start: int = 0) -> list[EntryRow]:
        """Sequences and every hash done again from row `start` on."""
        done = rows[:start]
        prev_hash = done[-1].entry_hash if done else ZERO_HASH
        for row in rows[start:]:
            row = row._replace(
                sequence=len(done), prev_hash=prev_hash, content_hash=content_hash_of(row)
            )
            row = row._replace(entry_hash=hash_of(row, run))
            done.append(row)
            prev_hash = row.entry_hash
        return done

    def edited(self, run: str, sequence: int, **changes: Any) -> list[EntryRow]:
        rows = self.rows(run)
        rows[sequence] = rows[sequence]._replace(**changes)
        return rows

    def seal_anew(self, by: Signer) -> None:
        """Throw the log of seals away and make one over the present rows, signed by somebody."""
        for table in ("anchor", "checkpoint", "seal_leaf"):
            self.do(f"DELETE FROM {table} WHERE tenant_id = %(t)s")
        tree = CompactRange()
        made = make_leaves(self.cursor, tenant_id=self.tenant.id, tenant_slug=self.tenant.slug)
        assert not made.refused
        StoredTree(self.cursor, self.tenant.id).append(tree, made.leaves)
        self.sign(tree.size, tree.root(), by)

    def sign(self, size: int, root: bytes, by: Signer) -> None:
        origin = origin_of(self.tenant.slug, read_anchors(self.tenant.slug).epoch)
        body = checkpoint_body(origin, size, root)
        line = signature_line(origin, by.public_keys[0], by.sign(body.encode()))
        self.do(
            "INSERT INTO checkpoint (tenant_id, size, last_leaf, origin, root_hash, note_text) "
            "VALUES (%(t)s, %(s)s, %(s)s - 1, %(o)s, %(r)s, %(n)s)",
            s=size,
            o=origin,
            r=root,
            n=signed_note(body, [line]),
        )

    def copy(self) -> Copy:
        """Everything the tenant's log has in the database, as a full backup has it."""
        kept: Copy = {}
        for table in TABLES:
            self.cursor.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
                " AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
                [table],
            )
            names = [row[0] for row in self.cursor.fetchall()]
            self.do(f"SELECT {', '.join(names)} FROM {table} WHERE tenant_id = %(t)s")
            kept[table] = names, self.cursor.fetchall()
        return kept

    def restore(self, kept: Copy) -> None:
        """Put an older copy in the place of what there is."""
        for table, (names, rows) in kept.items():
            self.do(f"DELETE FROM {table} WHERE tenant_id = %(t)s")
            if rows:
                places = ", ".join(["%s"] * len(names))
                self.cursor.executemany(
                    f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", rows
                )

    def sealed_log(self) -> SealedLog:
        return verify_sealed_log(
            self.cursor,
            tenant_id=self.tenant.id,
            tenant_slug=self.tenant.slug,
            anchors=lambda: read_anchors(self.tenant.slug),
            public_keys=signer().public_keys,
        )

    def report(self, run: str) -> ChainReport:
        """What both verifiers say, which is the same."""
        log = self.sealed_log()
        reports = []
        for in_sql in (False, True):
            examination = RunExamination(
                self.cursor,
                tenant_id=self.tenant.id,
                tenant_slug=self.tenant.slug,
                run_id=run,
                sealed_log=log,
            )
            if in_sql:
                reports.append(examination.in_sql(self.cursor))
            else:
                examination.read(self.cursor)
                reports.append(examination.report())
        by_python, by_sql = reports
        assert by_python.first_bad == by_sql.first_bad
        assert by_python.state is by_sql.state
        return by_python


@dataclasses.dataclass(frozen=True)
class OtherSigner:
    """Somebody with a key of their own."""

    public_keys: tuple[bytes, ...]
    sign: Callable[[bytes], bytes]

    def sign_as_previous(self, message: bytes) -> bytes | None:
        return None


@contextmanager
def hands_on(superuser_url: str, tenant: TenantKit) -> Iterator[Hands]:
    """A session that leaves nothing behind."""
    with psycopg.connect(superuser_url) as session:
        try:
            yield Hands(session, tenant)
        finally:
            session.rollback()
