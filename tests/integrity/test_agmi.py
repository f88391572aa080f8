"""The public suite `agent-memory-integrity`: its nine attacks on a stored log, as they are and with every hash done again.

The adapter is to agmi what a verifier on somebody's desk is: anything but `verified` counts as noticed. Entries are sealed and
anchored right after they were written, as the worker does.
"""

from typing import Any

import psycopg
import pytest
from agmi.adapters.base import MemoryAdapter, Record
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT

from memory.canonical import canonical
from memory.integrity.rows import EntryRow
from memory.integrity.states import State
from tests.builders import TenantKit, make_tenant
from tests.integrity.hands import Copy, Hands
from tests.integrity.logs import fill, seal, verified, writer

OTHER_RUN = "run-b"
RUN = "run-a"


class LogAdapter(MemoryAdapter):
    """A tenant's run, its rows written past the product. `rehashes`: the attacker redoes all hashes and moves the head."""

    name = "kindmem"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def __init__(self, superuser_url: str, *, rehashes: bool) -> None:
        self._url = superuser_url
        self._rehashes = rehashes
        self._tenant: TenantKit | None = None

    @property
    def tenant(self) -> TenantKit:
        assert self._tenant is not None
        return self._tenant

    def setup(self) -> None:
        self._tenant = make_tenant()
        self._by = writer(self._tenant)

    def teardown(self) -> None:
        self._tenant = None

    def seed(self, n: int) -> None:
        self._write(RUN, n)

    def seed_other(self, n: int) -> None:
        self._write(OTHER_RUN, n)

    def append_genuine(self) -> None:
        self._write(RUN, 1)

    def _write(self, run: str, n: int) -> None:
        for number in range(n):
            fill(self.tenant, 1, run, by=self._by, text=f"{run} {number}")
        seal(self.tenant)

    def read_all_raw(self) -> list[Record]:
        return self._read(RUN)

    def read_other_raw(self) -> list[Record]:
        return self._read(OTHER_RUN)

    def _read(self, run: str) -> list[Record]:
        with self._hands() as hands:
            return [
                Record(
                    seq=row.sequence,
                    fields={
                        "run": run,
                        "payload": row.payload_text,
                        "kind": row.kind,
                        "actor": row.actor,
                    },
                )
                for row in hands.rows(run)
            ]

    def write_raw(self, record: Record) -> None:
        changes = {
            "payload_text": record.fields["payload"],
            "kind": record.fields["kind"],
            "actor": record.fields["actor"],
        }
        with self._hands() as hands:
            rows = hands.rows(RUN)
            if record.seq < len(rows):
                rows[record.seq] = rows[record.seq]._replace(**changes)
            else:
                last = rows[-1]
                new = last._replace(sequence=record.seq, id=f"forged-{last.id}", **changes)
                # Without its own hashes it would not fit behind the one before.
                rows.append(hands.rehashed(RUN, [*rows, new], len(rows))[-1])
            self._put(hands, rows)

    def delete_raw(self, seq: int) -> None:
        with self._hands() as hands:
            self._put(hands, [row for row in hands.rows(RUN) if row.sequence != seq])

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self.write_raw(Record(victim_seq, donor.fields))

    def read_meta(self, seq: int) -> dict[str, Any]:
        return {"actor": self._read(RUN)[seq].fields["actor"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        record = self._read(RUN)[seq]
        record.fields["actor"] = canonical(meta)
        self.write_raw(record)

    def mutate_payload(self, record: Record) -> Record:
        record.fields["payload"] = canonical({"text": "tampered with"})
        return record

    def snapshot_store(self) -> Copy:
        with self._hands() as hands:
            return hands.copy()

    def restore_store(self, token: Any) -> None:
        with self._hands() as hands:
            hands.restore(token)

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['run']}:{record.seq}"

    def payload_of(self, record: Record) -> str:
        return str(record.fields["payload"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["run"])

    def reload(self) -> None:
        """Nothing is kept in memory."""

    def verify(self) -> bool:
        report = verified(self.tenant, RUN)
        self.verify_detail = f"{report.state.value}: {report.first_bad}"
        return report.state is State.VERIFIED

    def _put(self, hands: Hands, rows: list[EntryRow]) -> None:
        if self._rehashes:
            hands.replace(RUN, hands.rehashed(RUN, rows))
        else:
            hands.put(RUN, rows)

    def _hands(self) -> "Session":
        return Session(self._url, self.tenant)


class Session:
    """Hands whose work is committed."""

    def __init__(self, url: str, tenant: TenantKit) -> None:
        self._session = psycopg.connect(url)
        self._hands = Hands(self._session, tenant, keeps_constraints=True)

    def __enter__(self) -> Hands:
        return self._hands

    def __exit__(self, *error: object) -> None:
        self._session.commit() if error[0] is None else self._session.rollback()
        self._session.close()


@pytest.fixture
def adapters(live_db: None, superuser_url: str) -> list[LogAdapter]:
    return [LogAdapter(superuser_url, rehashes=rehashes) for rehashes in (False, True)]


def test_nine_of_nine_attacks_of_the_public_suite_are_noticed_also_when_hashes_are_redone(
    adapters: list[LogAdapter],
) -> None:
    attacks = [attack() for attack in AT_REST_ATTACKS_WITH_SNAPSHOT]
    assert len(attacks) == 9
    for attack in attacks:
        attack.seed_count = 5
    for adapter in adapters:
        results = [attack.run(adapter) for attack in attacks]
        errors = [(one.attack, one.error) for one in results if one.error]
        assert not errors
        assert [one.attack for one in results if not one.detected] == []
