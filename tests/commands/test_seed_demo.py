"""`seed_demo` makes a tenant that can be walked through at once, and shows its secrets once."""

import json
import secrets
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management.base import CommandError
from django.db import connection

from corrections.queries.about_me import counts_about_me
from kindmem.demo import seed
from kindmem.demo.seed import MEMBERS, PERSON, PROJECTS
from memory.access import Principal, system_principal
from memory.actions.import_run import import_run
from memory.actions.verify_run import verify_run
from memory.api.authentication import principal_of_member
from memory.errors import BadInput, LogNotFound, NotFound
from memory.models import Member
from memory.queries.facts import FactFilters, fact_revisions, list_facts
from memory.queries.run_log import entries_by_ids, entry_by_id, run_heads
from memory.tenancy import tenant_context, tenant_id_of
from tests.builders import ApiClient
from tests.commands.commands import answered, told


@pytest.fixture(scope="module")
def seeded(django_db_setup: None, django_db_blocker: Any) -> dict[str, Any]:
    """The demo tenant, made once for all tests of it, for good."""
    with django_db_blocker.unblock():
        made: dict[str, Any] = answered("seed_demo")
        connection.close()
    return made


@pytest.fixture
def demo(seeded: dict[str, Any], db: None) -> dict[str, Any]:
    return seeded


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch, settings: Any) -> str:
    """Let the next demo tenant be another one, and quickly made."""
    slug, domain = f"demo-{secrets.token_hex(4)}", f"{secrets.token_hex(4)}.example"
    monkeypatch.setattr(seed, "SLUG", slug)
    members = tuple(
        (role, f"{email.split('@')[0]}@{domain}", subject) for role, email, subject in MEMBERS
    )
    monkeypatch.setattr(seed, "MEMBERS", members)
    settings.KINDMEM_EMBEDDINGS = "none"
    return slug


def operator() -> Principal:
    return system_principal(tenant_id_of("demo"), "demo")


def test_it_prints_five_sign_ins_and_two_keys_that_work(demo: dict[str, Any]) -> None:
    assert [one["role"] for one in demo["signIns"]] == [
        "owner",
        "admin",
        "admin",
        "auditor",
        "person",
    ]
    assert {tuple(one) for one in demo["signIns"]} == {("role", "email", "password")}
    for one in (demo["signIns"][0], demo["signIns"][-1]):
        assert authenticate(username=one["email"], password=one["password"]) is not None
    app, agent = (
        ApiClient(demo[name]).get("/v1/memory/me").json() for name in ("apiKey", "agentKey")
    )
    assert (app["tenant"]["id"], app["role"]) == ("demo", "app")
    assert (agent["role"], agent["grants"]["projects"]) == ("agent", list(PROJECTS))
    with tenant_context(tenant_id_of("demo")):
        assert Member.objects.get(role="person").subject_id == PERSON


def test_passwords_and_tokens_are_kept_nowhere_in_the_database(demo: dict[str, Any]) -> None:
    shown = [one["password"] for one in demo["signIns"]]
    shown += [demo[name].split("_", 2)[2] for name in ("apiKey", "agentKey")]
    assert len(set(shown)) == 7
    with tenant_context(tenant_id_of("demo")), connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        tables = [row[0] for row in cursor.fetchall()]
        assert "api_key" in tables
        for table in tables:
            cursor.execute("SELECT has_table_privilege(%s, 'SELECT')", [table])
            if cursor.fetchone()[0]:
                cursor.execute(f"SELECT coalesce(string_agg(t::text, ''), '') FROM \"{table}\" t")
                kept = cursor.fetchone()[0]
                assert not [secret for secret in shown if secret in kept]


def test_every_run_verifies_and_every_fact_names_what_caused_it(demo: dict[str, Any]) -> None:
    with tenant_context(tenant_id_of("demo")):
        runs = [head["runId"] for head in run_heads(operator(), limit=200)]
        assert len(runs) == 9
        for run_id in runs:
            assert verify_run(principal=operator(), run_id=run_id).first_bad is None
        facts = list_facts(operator(), FactFilters(), limit=200)
        causes = {cause for fact in facts for cause in fact.cause_ids}
        assert set(entries_by_ids(tenant_id_of("demo"), sorted(causes))) == causes
        assert all(fact.cause_ids for fact in facts)
    assert len(facts) > 20
    assert {fact.type for fact in facts} >= {
        "customer-profile",
        "trip",
        "expense",
        "invoice",
        "project-code",
    }
    assert {fact.trust for fact in facts} == {"unverified", "asserted", "verified"}


def test_one_fact_tells_a_correction_from_guess_to_checked(demo: dict[str, Any]) -> None:
    with tenant_context(tenant_id_of("demo")):
        checked, said, guessed = fact_revisions(operator(), "code-exp-3391")
    assert [one.trust for one in (guessed, said, checked)] == ["unverified", "asserted", "verified"]
    assert [one.content["project_code"] for one in (guessed, said, checked)] == [
        "LKF-BRAND-22",
        "LKF-RETAIL-07",
        "LKF-RETAIL-07",
    ]


@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("Which hotel does Mara stay at in Lisbon?", "TRIP-LIS-0304"),
        ("Which train does Priya take to Berlin?", "TRIP-BER-0409"),
        ("What did the team dinner with Fado Conservas cost?", "EXP-3391"),
    ],
)
def test_a_question_finds_its_answer(
    demo: dict[str, Any], mode: str, question: str, thing: str
) -> None:
    found = ApiClient(demo["agentKey"]).post(
        "/v1/memory/retrieve", {"mode": mode, "query": question, "limit": 5}
    )
    contents = [json.dumps(one["fact"]["content"]) for one in found.json()["results"]]
    assert any(thing in content for content in contents[:3]), contents


def test_a_person_finds_what_is_remembered_about_them_in_every_state(demo: dict[str, Any]) -> None:
    app, agent = (ApiClient(demo[name]) for name in ("apiKey", "agentKey"))
    about = {"subject_id": PERSON, "limit": 200}
    found = app.get("/v1/memory/records", about).json()["data"]
    gone = app.get("/v1/memory/records", {**about, "status": "deleted"}).json()["data"]
    assert [(one["id"], one["value"]) for one in gone] == [("mem-own-car", None)]
    assert {one["source"]["type"] for one in found} == {
        "user_stated",
        "system_record",
        "agent_inferred",
        "user_correction",
    }
    dinner = {"user_id": PERSON, "trip_id": "TRIP-LIS-0304", "expense_id": "EXP-3391"}
    asked = {"key": "expense.dinner_code", "context": dinner}
    told = agent.post("/v1/memory/recall", asked).json()
    assert (told["value"], told["decision"]) == ("LKF-RETAIL-07", "apply")
    asked["context"] = {**dinner, "expense_id": "EXP-9"}
    told = agent.post("/v1/memory/recall", asked).json()
    assert (told["value"], told["decision"]) == ("LKF-BRAND-22", "ask"), "the next dinner is not it"


def test_the_person_of_the_demo_has_facts_and_entries_and_reads_the_evidence_of_each_memory(
    demo: dict[str, Any],
) -> None:
    [user_id] = (
        get_user_model().objects.filter(username=MEMBERS[-1][1]).values_list("pk", flat=True)
    )
    with tenant_context(tenant_id_of("demo")):
        person = principal_of_member(user_id, "demo")
        counts = counts_about_me(person)
        assert counts["fact"] >= 4
        assert counts["log-entry"] >= 40
        quoted = ("travel-01:5", "travel-02:7", "expenses-01:13", "expenses-04:9")
        assert all(entry_by_id(person, one).payload_text for one in quoted)
        for other in ("travel-04:1", "expenses-02:9"):
            with pytest.raises(LogNotFound):
                entry_by_id(person, other)


def test_a_second_call_changes_nothing_and_shows_no_secret(demo: dict[str, Any]) -> None:
    before = set(get_user_model().objects.values_list("username", "password"))
    again = answered("seed_demo")
    assert again == {"tenant": "demo", "signIns": [], "apiKey": None, "isNew": False}
    assert "changepassword owner@larkfield.example" in told("seed_demo")
    assert set(get_user_model().objects.values_list("username", "password")) == before


def test_the_text_shows_what_the_json_does(db: None, another: str) -> None:
    text = told("seed_demo")
    assert [role for role, email, _ in seed.MEMBERS if email in text] == [
        role for role, *_ in MEMBERS
    ]
    assert text.count("kmk_") == 2


def test_what_fails_on_the_way_leaves_nothing_behind(
    live_db: None, another: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**given: Any) -> None:
        import_run(**given)
        raise BadInput.at("disk", "is full")

    monkeypatch.setattr(seed, "import_run", fail)
    with pytest.raises(CommandError, match="disk is full"):
        told("seed_demo")
    with pytest.raises(NotFound):
        tenant_id_of(another)
    emails = [email for _, email, _ in seed.MEMBERS]
    assert not get_user_model().objects.filter(username__in=emails).exists()
