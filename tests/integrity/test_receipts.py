"""What clients kept of their appends, as a file that `verify_log` holds against the log."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from memory.management.command import Refused
from tests.builders import TenantKit
from tests.integrity.logs import attacker
from tests.integrity.test_bundle import checked, exported

RUN = "run-1"


def kept(tenant: TenantKit, count: int, run: str = RUN) -> list[dict[str, Any]]:
    """The answers to appends, as a client keeps them."""
    client = tenant.client("agent", projects=["p1"])
    answers = []
    for n in range(count):
        body = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {"n": n}}
        answer = client.post(f"/v1/memory/runs/{run}/log", body)
        assert answer.status_code == 201
        answers.append(answer.json())
    return answers


def written(answers: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / "receipts.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in answers) + "\n\n")
    return path


def judged(tenant: TenantKit, *options: str) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    code: Any = 0
    try:
        call_command("verify_log", tenant.slug, "--json", *options, stdout=out)
    except SystemExit as ended:
        code = ended.code
    return int(code or 0), json.loads(out.getvalue())


@pytest.mark.parametrize("verifier", [(), ("--sql",)])
def test_an_unsealed_tail_that_was_cut_with_its_head_is_shown_by_a_file_of_receipts(
    verifier: tuple[str, ...], live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    answers = kept(live_acme, 4)
    path = written(answers, tmp_path)
    assert judged(live_acme, "--receipts", str(path), *verifier)[0] == 14
    with attacker(superuser_url) as session:
        session.execute(
            "DELETE FROM log_entry WHERE tenant_id = %s AND run_id = %s AND sequence = 3",
            [live_acme.id, RUN],
        )
        session.execute(
            "UPDATE run_head h SET next_sequence = 3, entry_count = 3, head_hash = e.entry_hash, prev_hash = e.prev_hash,"
            " last_at = e.recorded_at"
            " FROM log_entry e WHERE h.tenant_id = %s AND h.run_id = %s AND e.tenant_id = h.tenant_id AND e.run_id = h.run_id"
            " AND e.sequence = 2",
            [live_acme.id, RUN],
        )
    assert judged(live_acme, *verifier)[0] == 14, "the chain itself can't show it"

    code, told = judged(live_acme, "--receipts", str(path), *verifier)

    assert (code, told["state"]) == (10, "tampered")
    [bad] = [one["firstBad"] for one in told["runs"] if "firstBad" in one]
    assert (bad["runId"], bad["sequence"], bad["class"]) == (RUN, 3, "gap")
    assert bad["expected"] == answers[3]["entryHash"]


def test_a_receipt_of_a_run_that_is_gone_is_named(
    live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    path = written(kept(live_acme, 2, "gone"), tmp_path)
    kept(live_acme, 1)
    with attacker(superuser_url) as session:
        for table in ("log_entry", "run_head"):
            session.execute(
                f"DELETE FROM {table} WHERE tenant_id = %s AND run_id = 'gone'", [live_acme.id]
            )

    code, told = judged(live_acme, "--receipts", str(path))

    assert code == 10
    [bad] = [one["firstBad"] for one in told["runs"] if "firstBad" in one]
    assert (bad["runId"], bad["sequence"], bad["class"]) == ("gone", 0, "gap")


@pytest.mark.parametrize("line", ["no json", "{}", '{"runId":"r","sequence":0,"entryHash":"x"}'])
def test_a_file_that_holds_no_receipts_is_refused_with_the_line(
    line: str, live_acme: TenantKit, tmp_path: Path
) -> None:
    path = tmp_path / "receipts.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(Refused, match="line 2 is no receipt"):
        call_command("verify_log", live_acme.slug, "--receipts", str(path))
    with pytest.raises(Refused, match="No such file"):
        call_command("verify_log", live_acme.slug, "--receipts", str(tmp_path / "none"))


def receipt(**changes: Any) -> str:
    said = {"runId": RUN, "sequence": 0, "entryHash": "sha256:" + "0" * 64, **changes}
    return json.dumps(said)


ODD = [
    receipt(sequence=True),
    receipt(sequence=1.0),
    receipt(sequence="1"),
    receipt(sequence=-1),
    receipt(sequence=10**30),
    receipt(sequence=None),
    receipt(sequence=[0]),
    receipt(runId=5),
    receipt(runId=""),
    receipt(runId="a\x00b"),
    receipt(runId="\ud800"),
    receipt(entryHash="sha256:00"),
    receipt(entryHash=7),
    '{"runId":"r","sequence":NaN,"entryHash":"x"}',
    '{"data":[5]}',
    "[" * 100_000,
    "5",
]


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_an_odd_receipt_is_said_with_its_line_by_both_verifiers(
    line: str, live_acme: TenantKit, tmp_path: Path
) -> None:
    good = kept(live_acme, 1)[0]
    path = tmp_path / "receipts.jsonl"
    path.write_text(json.dumps(good) + "\n" + line + "\n")
    with pytest.raises(Refused, match="line 2 is no receipt"):
        call_command("verify_log", live_acme.slug, "--receipts", str(path))
    bundle = exported(live_acme, tmp_path)
    assert checked(bundle, "--receipts", str(path))[0] == 2 or line in (
        receipt(runId=""),
        receipt(runId="a\x00b"),
        receipt(runId="\ud800"),
    ), "runs of other names are not in the bundle"


def test_a_receipt_of_another_tenant_is_refused_in_a_sentence(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    good = kept(live_acme, 1)[0]
    stranger = {**good, "scope": {"tenantId": "somebody-else"}}
    path = written([good, stranger], tmp_path)
    with pytest.raises(Refused, match="line 2 is a receipt of the tenant somebody-else, not of"):
        call_command("verify_log", live_acme.slug, "--receipts", str(path))
    assert checked(exported(live_acme, tmp_path), "--receipts", str(path))[0] == 2


def test_the_answer_to_a_batch_is_as_many_receipts_as_it_has_entries(
    live_acme: TenantKit, superuser_url: str, tmp_path: Path
) -> None:
    entry = {"kind": "tool-call", "scope": {"projectId": "p1"}, "payload": {"n": 1}}
    batch = live_acme.client("agent", projects=["p1"]).post(
        f"/v1/memory/runs/{RUN}/log/batch", {"entries": [entry] * 3}
    )
    assert batch.status_code == 201, batch.content
    path = written([batch.json(), *kept(live_acme, 1)], tmp_path)
    assert judged(live_acme, "--receipts", str(path))[0] == 14
    assert checked(exported(live_acme, tmp_path), "--receipts", str(path))[0] == 14
    told = batch.json()
    told["data"][2]["entryHash"] = "sha256:" + "1" * 64
    path = written([told], tmp_path)
    code, answer = judged(live_acme, "--receipts", str(path))
    assert code == 10
    [bad] = [one["firstBad"] for one in answer["runs"] if "firstBad" in one]
    assert (bad["sequence"], bad["class"]) == (2, "content")
    assert checked(exported(live_acme, tmp_path), "--receipts", str(path))[0] == 10


def test_a_file_that_is_no_text_is_refused_in_a_sentence(
    live_acme: TenantKit, tmp_path: Path
) -> None:
    path = tmp_path / "receipts.jsonl"
    path.write_bytes(b"\xff\xfe{}\n")
    with pytest.raises(Refused, match="not UTF-8"):
        call_command("verify_log", live_acme.slug, "--receipts", str(path))
