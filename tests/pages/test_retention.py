"""The pages of retention: which rule decides, a change that is shown before it is saved, sweeps and what came of them."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corrections.views import admin_sweeps
from memory.errors import SweepOff
from memory.fact_shape import Retention
from memory.tenancy import tenant_context
from memory.type_policy import type_policy
from tests.builders import TenantKit
from tests.lifecycle.facts import age, count, delete, value, write, written_before
from tests.lifecycle.test_holds import place
from tests.lifecycle.test_sweep import settings, sweep
from tests.pages.people import Person, person, text_of
from tests.pages.test_holds import hidden, rows
from tests.pages.test_workspace import governance

RULE, PREVIEW, SWEEPS = (
    "admin/retention/rule/",
    "admin/retention/rule/preview/",
    "admin/sweeps/",
)


@pytest.fixture
def admin(acme: TenantKit) -> Person:
    return person(acme, "admin")


def saved(admin: Person, query: str) -> Any:
    seen = admin.get(f"{PREVIEW}?{query}")
    assert seen.status_code == 200
    return admin.post(f"{PREVIEW}?{query}", hidden(seen))


def test_the_page_tells_the_ladder_the_default_and_the_rules(admin: Person) -> None:
    said = text_of(admin.get("admin/retention/"))
    rungs = [
        "Legal hold",
        "Erasure",
        "The fact itself",
        "The rule of its type",
        "The workspace's default",
    ]
    places = [
        said.index(re.sub("'", "&#x27;", one)) if one not in said else said.rindex(one)
        for one in rungs
    ]
    assert places
    assert "no rule: kept until somebody deletes it" in said
    assert "No type has a rule of its own" in said


def test_a_rule_is_shown_first_and_saved_as_it_was_shown(acme: TenantKit, admin: Person) -> None:
    written_before(acme, "due", "held", type="mail", hours=2400)
    write(acme, type="mail", retention=Retention(keep_days=900))
    place(acme, fact_ids=("held",))
    seen = admin.get(PREVIEW, {"type": "mail", "delete_after_days": "30"})
    said = text_of(seen)
    assert "2 facts get another end" in said
    assert "Due at the next sweep with this rule 1" in said
    assert "kept by a legal hold 1" in said
    assert "1 fact stops being read at once" in said
    with tenant_context(acme.id):
        assert type_policy(acme.id, "mail").delete_after_days is None
    query = "type=mail&delete_after_days=30"
    led = [admin.post(f"{PREVIEW}?{query}", hidden(seen)) for _twice in range(2)]
    assert [one.status_code for one in led] == [302, 302]
    assert "destroyed after 30 days" in text_of(admin.get("admin/retention/"))
    (told,) = governance(acme, "retention.type-set")
    assert told == {
        "type": "retention.type-set",
        "factType": "mail",
        "before": {},
        "after": {"deleteAfterDays": 30},
        "facts": 2,
    }
    result = sweep(acme)
    assert (result.destroyed, result.held) == (1, 1)


def test_a_rule_of_a_type_changes_nothing_else_that_is_declared(
    acme: TenantKit, admin: Person
) -> None:
    declared = {"keyword": False, "contentSchema": {"type": "string"}, "retention": {"keepDays": 3}}
    assert acme.client("admin").put("/v1/memory/types/mail", declared).status_code == 200
    assert saved(admin, "type=mail&keep_days=5&delete_after_days=9").status_code == 302
    with tenant_context(acme.id):
        policy = type_policy(acme.id, "mail")
    assert (policy.keep_days, policy.delete_after_days) == (5, 9)
    assert (policy.keyword, policy.content_schema) == (False, {"type": "string"})
    assert saved(admin, "type=mail").status_code == 302
    with tenant_context(acme.id):
        assert type_policy(acme.id, "mail").keep_days is None


def test_taking_a_rule_away_says_what_decides_instead_and_that_nothing_is_destroyed(
    acme: TenantKit, admin: Person
) -> None:
    """U16."""
    written_before(acme, "old", type="mail", hours=2400)
    saved(admin, "keep_days=300")
    assert saved(admin, "type=mail&keep_days=200&delete_after_days=900").status_code == 302
    edited = admin.get(f"{RULE}?type=mail").content.decode()
    assert 'value="200"' in edited
    assert "Both empty: no rule of its own" in edited
    said = text_of(admin.get(f"{PREVIEW}?type=mail")).replace("&#x27;", "'")
    before = "before: − can't be deleted for 200 days; read for 900 days, then destroyed"
    assert before in said
    assert (
        "after: + no rule of its own; the workspace's default decides: kept for 300 days, then destroyed"
        in said
    )
    assert "The next sweep destroys nothing that it would not destroy anyway" in said
    assert "can't be undone" not in said
    assert saved(admin, "type=mail").status_code == 302
    assert "No type has a rule of its own" in text_of(admin.get("admin/retention/"))
    assert value(acme, "SELECT expires_at - created_at FROM fact") == timedelta(days=300)
    assert sweep(acme).destroyed == 0


def test_a_type_without_a_rule_says_so_once_where_the_workspace_has_none_either(
    acme: TenantKit, admin: Person
) -> None:
    said = text_of(admin.get(f"{PREVIEW}?type=mail&keep_days=9"))
    assert (
        "no rule of its own, and the workspace has none: kept until somebody deletes it + kept for 9"
        in said.replace(" after: ", " ")
    )


def test_the_default_is_saved_and_the_switch_of_sweeping_stays(
    acme: TenantKit, admin: Person
) -> None:
    fact = write(acme)
    settings(acme, sweepIsOff=True)
    assert saved(admin, "keep_days=5&grace_days=2").status_code == 302
    kept = value(acme, "SELECT settings -> 'retention' FROM tenant")
    assert kept == {"keepDays": 5, "graceDays": 2, "sweepIsOff": True} or '"keepDays": 5' in kept
    assert value(acme, "SELECT keep_reason FROM fact WHERE id = %s", fact.id) == "keep-days"
    assert "kept for 5 days, then destroyed" in text_of(admin.get("admin/retention/"))


@pytest.mark.parametrize("change", ["facts", "rule", "forged", "another", "late"])
def test_what_changed_since_it_was_shown_is_not_saved_and_shown_anew(
    acme: TenantKit, admin: Person, change: str
) -> None:
    query = f"{PREVIEW}?delete_after_days=30"
    fields, presser, moment = hidden(admin.get(query)), admin, timezone.now()
    if change == "facts":
        written_before(acme, "old", hours=2400)
    elif change == "rule":
        saved(admin, "delete_after_days=60")
    elif change == "forged":
        fields["seal"] = "forged"
    elif change == "another":
        presser = person(acme, "admin")
    else:
        moment += timedelta(minutes=11)
    with time_machine.travel(moment, tick=False):
        presser = person(acme, "admin") if change == "late" else presser
        answer = presser.post(query, fields)
    assert answer.status_code == 409
    assert "not what you were shown" in text_of(answer)
    before = 60 if change == "rule" else None
    settled = value(acme, "SELECT (settings -> 'retention' ->> 'deleteAfterDays')::int FROM tenant")
    assert settled == before
    assert (
        admin.post(
            query, hidden(answer) if presser is admin else hidden(admin.get(query))
        ).status_code
        == 302
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("keep_days=9&delete_after_days=3", "before it need not be kept"),
        ("keep_days=0", "greater than or equal to 1"),
        ("keep_days=40000", "less than or equal to 36500"),
        ("keep_days=soon", "Enter a whole number"),
        ("type=" + "x" * 257, "at most 256"),
    ],
)
def test_a_rule_that_can_not_be_comes_back_with_what_was_typed(
    admin: Person, query: str, words: str
) -> None:
    answer = admin.get(f"{PREVIEW}?{query}")
    assert answer.status_code == 422
    assert words in text_of(answer)


def test_saving_asks_who_it_is_and_auditors_only_read(acme: TenantKit, admin: Person) -> None:
    fields = hidden(admin.get(f"{PREVIEW}?keep_days=5"))
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        assert "Is it you?" in text_of(admin.post(f"{PREVIEW}?keep_days=5", fields))
    auditor = person(acme, "auditor")
    assert auditor.get("admin/retention/").status_code == 200
    assert auditor.get(SWEEPS).status_code == 200
    for path in (RULE, PREVIEW):
        assert auditor.get(path).status_code == 403
    for path in ("dry-run", "switch"):
        assert auditor.post(SWEEPS + path).status_code == 403
    assert person(acme, "person", subject="ann").get("admin/retention/").status_code == 403


def test_a_dry_run_says_by_type_what_a_sweep_then_destroys_with_evidence(
    acme: TenantKit, admin: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [write(acme, type="mail").id for _ in range(5)]
    ids.append(write(acme, type="note").id)
    held, removed = write(acme, type="mail"), write(acme, type="note")
    age(acme, *ids, held.id)
    delete(acme, removed.id)
    place(acme, fact_ids=(held.id,))
    fields = hidden(admin.get(SWEEPS))
    asked = [admin.post(f"{SWEEPS}dry-run", fields)["Location"] for _twice in range(2)]
    assert asked[0] == asked[1]
    assert count(acme, "sweep") == 1
    said = text_of(admin.get(asked[0]))
    assert "A sweep would destroy 7 facts" in said
    assert "Nothing was destroyed" in said
    assert count(acme, "fact") == 8
    done = sweep(acme, batch_size=3)
    counted = value(acme, "SELECT counts_text || types_text FROM sweep WHERE is_dry_run")
    assert counted == value(
        acme, "SELECT counts_text || types_text FROM sweep WHERE NOT is_dry_run"
    )
    monkeypatch.setattr(admin_sweeps, "EVIDENCE_A_PAGE", 3)
    page, seen = f"{SWEEPS}{done.id}/", []
    while page:
        answer = admin.get(page)
        seen += rows(answer)
        following = re.search(r'href="([^"]+)" data-next', answer.content.decode())
        page = following.group(1).replace("&amp;", "&") if following else ""
    assert len(seen) == 7
    assert all(one in " ".join(seen) for one in [*ids, removed.id])
    said = text_of(answer)
    for words in (
        "7 facts destroyed",
        "mail 5",
        "note 2",
        "kept by a legal hold 1",
        "somebody deleted it 1",
    ):
        assert words in said
    assert len(rows(admin.get(SWEEPS))) == 2


def test_the_switch_stops_all_sweeping_and_lets_it_go_on(acme: TenantKit, admin: Person) -> None:
    age(acme, write(acme).id)
    for _twice in range(2):
        assert admin.post(f"{SWEEPS}switch", {"sweeping": "off"}).status_code == 302
    with pytest.raises(SweepOff):
        sweep(acme)
    assert "switched off" in text_of(admin.get(SWEEPS))
    assert "switched off" in text_of(admin.get("admin/retention/"))
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        assert "Is it you?" in text_of(admin.post(f"{SWEEPS}switch", {"sweeping": "on"}))
    assert admin.post(f"{SWEEPS}switch", {"sweeping": "on"}).status_code == 302
    assert sweep(acme).destroyed == 1
    told = [one["type"] for one in governance(acme, "sweeping.stopped", "sweeping.resumed")]
    assert told == ["sweeping.stopped", "sweeping.resumed"]


@pytest.mark.parametrize(
    ("retention", "tenant", "type_days", "decides"),
    [
        (Retention(legal_hold=True, keep_days=3), {"keepDays": 9}, 7, "Legal hold yes"),
        (
            Retention(keep_days=3),
            {"keepDays": 9},
            7,
            "The fact itself says kept for 3 days, then destroyed: until",
        ),
        (
            Retention(),
            {"keepDays": 9},
            7,
            "The rule of its type kept for 7 days, then destroyed: until",
        ),
        (
            Retention(),
            {"keepDays": 9},
            None,
            "workspace's default kept for 9 days, then destroyed: until",
        ),
        (Retention(), {}, None, "Otherwise kept until it is removed"),
    ],
)
def test_a_person_reads_each_rung_of_the_ladder_and_which_one_decides(
    acme: TenantKit,
    retention: Retention,
    tenant: dict[str, int],
    type_days: int | None,
    decides: str,
) -> None:
    settings(acme, **tenant)
    if type_days is not None:
        declared = {"retention": {"keepDays": type_days}}
        assert acme.client("admin").put("/v1/memory/types/note", declared).status_code == 200
    app = acme.client("app", users=["ann"])
    said = {
        name: days
        for name, days in (("keepDays", retention.keep_days), ("legalHold", retention.legal_hold))
        if days is not None
    }
    body = {"type": "note", "scope": {"userId": "ann"}, "content": "x", "retention": said}
    made = app.post("/v1/memory/facts", body if said else {**body, "retention": {}}).json()["id"]
    ann = person(acme, "person", subject="ann")
    page = text_of(ann.get(f"facts/{made}/")).replace("&#x27;", "'")
    rungs = page[page.index("Why is this kept?") :]
    deciding = rungs[: rungs.index("decides")]
    assert decides in deciding, rungs
    assert rungs.count("decides") == 1


@pytest.mark.parametrize("path", ["admin/retention/", SWEEPS, RULE, PREVIEW + "?keep_days=4"])
def test_each_page_asks_the_database_little_and_is_light(
    acme: TenantKit, admin: Person, path: str
) -> None:
    for n in range(50):
        with tenant_context(acme.id), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO fact_type (tenant_id, type, keep_days, updated_by) VALUES (%s::uuid, %s::text, 5, 'service:x')",
                [acme.id, f"type-{n:02}"],
            )
        sweep(acme, dry_run=True)
    with CaptureQueriesContext(connection) as asked:
        answer = admin.get(path)
    assert answer.status_code == 200
    statements = [one for one in asked.captured_queries if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 12, [one["sql"][:90] for one in statements]
    assert len(answer.content) <= 100_000
