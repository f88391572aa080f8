"""Damage to the log survives the product's own clearing up: each attack, then all that destroys, then verifying.

The product works on a session of the attacker's, so that it sees what was done and everything is taken back at the end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from psycopg.conninfo import conninfo_to_dict

from memory.access import system_principal
from memory.actions.expire_overdue import expire_overdue
from memory.actions.run_erasure import run_due_erasures
from memory.actions.sweep_retention import sweep_retention
from memory.integrity.receipts import first_contradicted
from memory.integrity.states import State, Tampering
from memory.records import clock
from memory.records.sealing import destroy_overdue
from tests.builders import TenantKit
from tests.integrity.hands import Hands
from tests.integrity.test_attacks_on_database import (
    ATTACKS,
    OTHER,
    RUN,
    RUN_2,
    Attack,
    Ground,
    ground,  # noqa: F401  # a fixture: pytest finds it by its name
    place_of_leaf,
)
from tests.lifecycle.facts import age, write

pytestmark = pytest.mark.usefixtures("live_db")


class _Session:
    """The product's session with cursors that bind on the client, as the attacker's statements need."""

    def __init__(self, connected: psycopg.Connection[Any]) -> None:
        self._connected = connected

    def cursor(self) -> psycopg.ClientCursor[Any]:
        return psycopg.ClientCursor(self._connected)


@contextmanager
def attacked(superuser_url: str, tenant: TenantKit) -> Iterator[Hands]:
    """Hands on the session that the product itself works on; nothing stays."""
    connection.close()
    usual = dict(connection.settings_dict)
    superuser = conninfo_to_dict(superuser_url)
    connection.settings_dict |= {
        "USER": superuser["user"],
        "PASSWORD": superuser.get("password", ""),
    }
    try:
        with transaction.atomic():
            connection.ensure_connection()
            yield Hands(_Session(connection.connection), tenant)  # type: ignore[arg-type]  # its cursors are all that is used
            transaction.set_rollback(True)
    finally:
        connection.close()
        connection.settings_dict |= usual


def clear_up(hands: Hands) -> int:
    """Everything that destroys, with the triggers that the product has; how many facts went."""
    hands.do("SET LOCAL session_replication_role = origin")
    kit = hands.tenant
    principal = system_principal(kit.id, kit.slug, id="sweeper")
    due = write(kit, content="due")
    age(kit, due.id)
    destroyed = sweep_retention(principal=principal).destroyed
    expire_overdue(principal=principal)
    run_due_erasures(principal)
    destroy_overdue(kit.id, clock.now())
    return destroyed


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_still_named_with_class_and_place_after_a_sweep(
    attack: Attack,
    ground: Ground,  # noqa: F811  # the fixture above
) -> None:
    with attacked(ground.url, ground.tenant) as hands:
        place = place_of_leaf(hands, attack, ground)
        attack.act(hands, ground)
        assert clear_up(hands) == 1
        report = hands.report(attack.run)
        bad = report.first_bad
        assert report.state is State.TAMPERED
        assert bad is not None
        assert (bad.tampering, bad.run_id, bad.sequence) == (
            attack.tampering,
            attack.where or attack.run,
            place,
        )
        if attack.where is None:
            assert hands.report(OTHER).state is State.VERIFIED


def test_22_a_cut_unsealed_tail_is_still_shown_by_receipts_after_a_sweep(
    ground: Ground,  # noqa: F811  # the fixture above
) -> None:
    with attacked(ground.url, ground.tenant) as hands:
        hands.replace("run-tail", hands.rows("run-tail")[:1])
        assert clear_up(hands) == 1
        bad = first_contradicted(hands.cursor, ground.tenant.id, ground.receipts)["run-tail"]
        assert (bad.tampering, bad.sequence) == (Tampering.GAP, 1)


@pytest.mark.parametrize("run", [RUN, RUN_2])
def test_a_payload_called_erased_that_nobody_attested_is_still_named_after_a_sweep(
    run: str,
    ground: Ground,  # noqa: F811  # the fixture above
) -> None:
    with attacked(ground.url, ground.tenant) as hands:
        hands.do(
            "UPDATE log_entry SET payload_text = NULL, payload_salt = NULL, payload_erased_at = now()"
            " WHERE tenant_id = %(t)s AND run_id = %(r)s AND sequence = 3",
            r=run,
        )
        assert clear_up(hands) == 1
        report = hands.report(run)
        assert report.state is State.TAMPERED
        assert report.first_bad is not None
        assert (report.first_bad.tampering, report.first_bad.sequence) == (Tampering.CONTENT, 3)


def test_clearing_up_leaves_an_honest_log_as_it_was(
    ground: Ground,  # noqa: F811  # the fixture above
) -> None:
    with attacked(ground.url, ground.tenant) as hands:
        assert clear_up(hands) == 1
        for run in (RUN, RUN_2, OTHER):
            assert hands.report(run).state is State.VERIFIED
        assert hands.report("kindmem.governance").state is State.VERIFIED_UNSEALED_TAIL
