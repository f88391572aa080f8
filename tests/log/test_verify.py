"""Verifying a run over HTTP and by command, honest and tampered with."""

import io
import json
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from memory.access import Principal
from memory.actions.verify_run import verify_run
from memory.tenancy import tenant_context
from tests.builders import TenantKit

SCOPE = {"projectId": "p1"}


def fill(tenant: TenantKit, run: str = "run-1", count: int = 6) -> None:
    client = tenant.client("agent", projects=["p1"])
    bodies = [{"kind": "tool-call", "scope": SCOPE, "payload": {"n": n}} for n in range(count)]
    assert client.post(f"/v1/memory/runs/{run}/log/batch", {"entries": bodies}).status_code == 201


def tamper(superuser_url: str, statement: str, tenant: TenantKit) -> None:
    """As somebody with full write access to the database does it: past triggers and policies."""
    with psycopg.connect(superuser_url) as attacker:
        attacker.execute("SET session_replication_role = replica")
        assert attacker.execute(statement, {"tenant": tenant.id}).rowcount > 0


def verified(tenant: TenantKit, run: str = "run-1", **body: int) -> dict[str, Any]:
    answer = tenant.client("auditor").post(f"/v1/memory/runs/{run}/verify", body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_an_honest_run_is_intact_and_said_to_be_unsealed(acme: TenantKit) -> None:
    fill(acme)
    report = verified(acme)
    assert report["state"] == "verified-unsealed-tail"
    assert (report["from"], report["to"], report["entries"], report["unsealed"]) == (0, 5, 6, 6)
    assert report["headHash"].startswith("sha256:")
    assert "firstBad" not in report


def test_a_range_is_verified_alone(acme: TenantKit) -> None:
    fill(acme)
    report = verified(acme, **{"from": 2, "to": 4})
    assert (report["from"], report["to"], report["entries"]) == (2, 4, 3)
    bad = acme.client("auditor").post("/v1/memory/runs/run-1/verify", {"from": 4, "to": 2})
    assert bad.status_code == 400


def test_verifying_is_logged_and_the_list_of_runs_says_what_was_found(acme: TenantKit) -> None:
    fill(acme)
    verified(acme)
    auditor = acme.client("auditor")
    acts = auditor.get("/v1/memory/runs/kindmem.governance/log").json()["data"]
    verifications = [act["payload"] for act in acts if act["payload"]["type"] == "log.verified"]
    assert [act["runId"] for act in verifications] == ["run-1"]
    runs = auditor.get("/v1/memory/runs", {"status": "verified-unsealed-tail"}).json()["data"]
    assert [run["runId"] for run in runs] == ["run-1"]
    assert runs[0]["integrity"]["verifiedTo"] == 5
    assert "run-1" not in [
        run["runId"]
        for run in auditor.get("/v1/memory/runs", {"status": "unverified"}).json()["data"]
    ]


def test_verifying_needs_read_on_every_entry(acme: TenantKit) -> None:
    fill(acme)
    acme.client("agent", projects=["p2"]).post(
        "/v1/memory/runs/run-1/log", {"kind": "tool-call", "scope": {"projectId": "p2"}}
    )
    answer = acme.client("agent", projects=["p1"]).post("/v1/memory/runs/run-1/verify", {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission-denied")
    assert (
        acme.client("agent", projects=["p1", "p2"])
        .post("/v1/memory/runs/run-1/verify", {})
        .status_code
        == 200
    )
    hidden = acme.client("agent", projects=["p3"]).post("/v1/memory/runs/run-1/verify", {})
    assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "log-not-found")


def test_only_those_who_govern_read_the_servers_own_runs(acme: TenantKit) -> None:
    fill(acme)
    verified(acme)
    agent = acme.client("agent", everything=True)
    assert agent.get("/v1/memory/runs/kindmem.governance/log").status_code == 404
    assert "kindmem.governance" not in agent.get("/v1/memory/runs").content.decode()
    assert acme.client("admin").get("/v1/memory/runs/kindmem.governance/log").status_code == 200


@pytest.mark.parametrize(
    ("statement", "tampering", "sequence"),
    [
        (
            """UPDATE log_entry SET payload_text = '{"n":9}' WHERE tenant_id = %(tenant)s AND sequence = 3""",
            "content",
            3,
        ),
        (
            "UPDATE log_entry SET kind = 'tool-result' WHERE tenant_id = %(tenant)s AND sequence = 2",
            "content",
            2,
        ),
        ("DELETE FROM log_entry WHERE tenant_id = %(tenant)s AND sequence = 3", "gap", 3),
        ("DELETE FROM log_entry WHERE tenant_id = %(tenant)s AND sequence = 5", "gap", 5),
        ("DELETE FROM log_entry WHERE tenant_id = %(tenant)s AND run_id = 'run-1'", "gap", 0),
    ],
)
def test_what_was_done_is_named_with_its_place(
    live_acme: TenantKit, superuser_url: str, statement: str, tampering: str, sequence: int
) -> None:
    fill(live_acme)
    tamper(superuser_url, statement, live_acme)
    report = verified(live_acme)
    assert report["state"] == "tampered"
    assert (report["firstBad"]["class"], report["firstBad"]["sequence"]) == (tampering, sequence)
    runs = live_acme.client("auditor").get("/v1/memory/runs", {"status": "tampered"}).json()["data"]
    assert [run["runId"] for run in runs] == ["run-1"]


def test_a_cut_record_of_governance_is_reported_and_keeps_nobody_from_verifying(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme)
    auditor = live_acme.client("auditor")
    auditor.post("/v1/memory/runs/run-1/verify", {})
    cut = """DELETE FROM log_entry e WHERE tenant_id = %(tenant)s AND run_id = 'kindmem.governance' AND sequence =
             (SELECT max(sequence) FROM log_entry WHERE tenant_id = e.tenant_id AND run_id = e.run_id)"""
    tamper(superuser_url, cut, live_acme)
    answer = auditor.post("/v1/memory/runs/run-1/verify", {})
    assert (answer.status_code, answer.json()["state"]) == (200, "verified-unsealed-tail")
    broken = auditor.post("/v1/memory/runs/kindmem.governance/verify", {}).json()
    assert (broken["state"], broken["firstBad"]["class"]) == ("tampered", "gap")


def test_the_verifier_in_sql_says_the_same(live_acme: TenantKit, superuser_url: str) -> None:
    fill(live_acme)
    principal: Principal = live_acme.principal("auditor")

    def both() -> list[dict[str, Any]]:
        with tenant_context(live_acme.id):
            return [
                verify_run(principal=principal, run_id="run-1", in_sql=sql).as_wire()
                for sql in (False, True)
            ]

    assert both()[0] == both()[1]
    tamper(
        superuser_url,
        "UPDATE log_entry SET actor = 'x' WHERE tenant_id = %(tenant)s AND sequence = 4",
        live_acme,
    )
    python, sql = both()
    assert python == sql
    assert python["firstBad"]["sequence"] == 4


def run_command(*arguments: str) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    code = 0
    try:
        call_command("verify_log", *arguments, "--json", stdout=out)
    except SystemExit as exit:
        code = int(str(exit.code))
    return code, json.loads(out.getvalue())


@pytest.mark.parametrize("option", [[], ["--sql"]])
def test_the_command_exits_by_what_it_found(
    live_acme: TenantKit, superuser_url: str, option: list[str]
) -> None:
    fill(live_acme, "run-1")
    fill(live_acme, "run-2")
    code, answer = run_command(live_acme.slug, *option)
    assert (code, answer["state"]) == (14, "verified-unsealed-tail")
    assert {run["runId"] for run in answer["runs"]} == {"run-1", "run-2", "kindmem.governance"}
    tamper(
        superuser_url,
        "DELETE FROM log_entry WHERE tenant_id = %(tenant)s AND run_id = 'run-2' AND sequence = 1",
        live_acme,
    )
    code, answer = run_command(live_acme.slug, *option)
    assert (code, answer["state"]) == (10, "tampered")
    code, answer = run_command(live_acme.slug, "--run", "run-1", *option)
    assert code == 14
