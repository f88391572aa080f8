"""Somebody cuts a run in the database: whoever then acts is told, nothing is half done, and a restore is the way on."""

from typing import Any

import pytest
from django.core.management import call_command
from structlog.testing import capture_logs

from memory.management.command import Refused
from tests.builders import TenantKit
from tests.integrity.logs import RUN, attacker, fill, seal, verified, verified_twice
from tests.integrity.test_epochs_and_keys import copied, restored
from tests.pages.people import person

GOVERNANCE = "kindmem.governance"


def cut(url: str, tenant: TenantKit, run: str) -> int:
    """Remove the newest entry and leave the head row; the sequence it had."""
    with attacker(url) as session:
        row = session.execute(
            "DELETE FROM log_entry WHERE tenant_id = %(t)s AND run_id = %(r)s AND sequence = (SELECT max(sequence)"
            " FROM log_entry WHERE tenant_id = %(t)s AND run_id = %(r)s) RETURNING sequence",
            {"t": tenant.id, "r": run},
        ).fetchone()
    assert row is not None
    return int(row[0])


class Callers:
    """Keys and people of a tenant, made while the record of governance still takes entries."""

    def __init__(self, tenant: TenantKit) -> None:
        self.auditor = tenant.client("auditor")
        self.agent = tenant.client("agent", projects=["p1"])
        self.person = person(tenant, "admin")

    def export(self) -> Any:
        """An act that is logged in the record of governance."""
        return self.auditor.post(f"/v1/memory/runs/{RUN}/export")

    def verify(self) -> Any:
        return self.auditor.post(f"/v1/memory/runs/{RUN}/verify", {})

    def append(self, run: str = RUN) -> Any:
        body = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {}}
        return self.agent.post(f"/v1/memory/runs/{run}/log", body)

    def shown(self, run: str) -> str:
        """How the list of runs shows the run."""
        listed = self.auditor.get("/v1/memory/runs").json()["data"]
        [found] = [one for one in listed if one["runId"] == run]
        return str(found["integrity"]["state"])


@pytest.fixture
def callers(live_acme: TenantKit) -> Callers:
    fill(live_acme)
    return Callers(live_acme)


def test_an_act_that_a_cut_record_of_governance_cannot_log_is_refused_and_the_alarm_shown(
    callers: Callers, live_acme: TenantKit, superuser_url: str
) -> None:
    assert callers.export().status_code == 200
    before = callers.verify().json()
    sequence = cut(superuser_url, live_acme, GOVERNANCE)

    with capture_logs() as logs:
        answers = [callers.export() for _ in range(2)]

    for answer in answers:
        told = answer.json()["error"]
        assert (answer.status_code, told["code"]) == (409, "run-damaged")
        assert told["details"] == {"runId": GOVERNANCE}
        assert "restore_epoch" in told["message"]
    alarms = [one for one in logs if one["event"] == "a run was damaged outside the product"]
    assert [(one["run"], one["sequence"], one["found"]) for one in alarms] == [
        (GOVERNANCE, sequence, "gap")
    ], "an alarm, once"
    assert callers.shown(GOVERNANCE) == "tampered"
    health = callers.person.get("audit/health/").content.decode()
    assert "1 run is broken." in health
    assert callers.verify().json() == before, "other runs are as they were"
    assert callers.append().status_code == 201, "and go on"


def test_a_page_says_why_an_act_was_not_done(
    callers: Callers, live_acme: TenantKit, superuser_url: str
) -> None:
    callers.export()
    cut(superuser_url, live_acme, GOVERNANCE)
    answer = callers.person.post("admin/workspace/", {"undo_hours": "12", "pseudonymise": ""})

    text = answer.content.decode()
    assert answer.status_code == 409, text
    assert "The log was damaged, so this was not done" in text
    assert "Somebody changed this meanwhile" not in text


def test_a_cut_run_of_a_client_refuses_entries_and_is_in_the_record_of_governance(
    callers: Callers, live_acme: TenantKit, superuser_url: str
) -> None:
    sequence = cut(superuser_url, live_acme, RUN)

    answer = callers.append()

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run-damaged")
    assert callers.shown(RUN) == "tampered"
    acts = callers.auditor.get(f"/v1/memory/runs/{GOVERNANCE}/log", {"limit": 200})
    [said] = [
        act["payload"] for act in acts.json()["data"] if act["payload"]["type"] == "run.damaged"
    ]
    assert said == {
        "type": "run.damaged",
        "runId": RUN,
        "firstBad": {"sequence": sequence, "class": "gap"},
    }
    assert callers.append("run-2").status_code == 201


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM run_head WHERE tenant_id = %s AND run_id = %s",
        "UPDATE run_head SET next_sequence = 2, entry_count = 2 WHERE tenant_id = %s AND run_id = %s",
        "UPDATE run_head SET head_hash = sha256('x') WHERE tenant_id = %s AND run_id = %s",
    ],
)
def test_a_head_row_that_was_touched_is_found_by_the_next_append(
    damage: str, callers: Callers, live_acme: TenantKit, superuser_url: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(damage, [live_acme.id, RUN])

    answer = callers.append()

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run-damaged")
    assert verified_twice(live_acme).state.value == "tampered"


def test_after_a_restore_and_an_epoch_acts_are_logged_again(
    callers: Callers, live_acme: TenantKit, superuser_url: str
) -> None:
    callers.export()
    seal(live_acme)
    backup = copied(superuser_url, live_acme)
    fill(live_acme, 2, "run-2")
    seal(live_acme)
    cut(superuser_url, live_acme, GOVERNANCE)
    with pytest.raises(Refused) as refusal:
        call_command("restore_epoch", live_acme.slug, "--reason", "cut")
    assert "is not behind" in str(refusal.value) or "log-is-not-behind" in str(refusal.value)
    assert callers.export().status_code == 409

    restored(superuser_url, live_acme, backup)
    call_command("restore_epoch", live_acme.slug, "--reason", "the record was cut", verbosity=0)

    assert callers.export().status_code == 200
    seal(live_acme)
    assert verified(live_acme, GOVERNANCE).first_bad is None
