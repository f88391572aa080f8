"""What a verification found, on pages: the right place is named, and no entry that nothing is wrong with."""

import pytest

from memory.access import system_principal
from memory.actions.run_verifications import run_verifications
from tests.builders import TenantKit
from tests.integrity.logs import attacker, fill, seal
from tests.pages.people import Person, person, text_of


@pytest.fixture
def auditor(live_acme: TenantKit) -> Person:
    fill(live_acme)
    seal(live_acme)
    return person(live_acme, "auditor")


def test_a_broken_log_of_seals_accuses_no_entry_of_the_run(
    auditor: Person, live_acme: TenantKit, superuser_url: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE checkpoint SET root_hash = sha256(root_hash) WHERE tenant_id = %s",
            [live_acme.id],
        )
    answer = auditor.post("audit/run/run-1/verify/", {}, follow=True)
    page, shown = answer.content.decode(), text_of(answer)
    assert "Not vouched for: the log of seals is broken from leaf 0 on" in shown
    assert "of kindmem.seals: Checkpoint broken" in shown
    assert "Broken at entry" not in shown
    assert "is-bad" not in page
    assert "Around it" not in shown
    answer = auditor.get("audit/run/run-1/")
    assert "in the log of seals, from leaf 0 on; no entry of this run is accused" in text_of(answer)
    assert ">at #0<" not in answer.content.decode()
    answer = auditor.post("audit/verifications/tenant/", {})
    while run_verifications(system_principal(live_acme.id, live_acme.slug, id="verifier")):
        pass
    assert "#0 of kindmem.seals" in text_of(auditor.browser.get(answer["Location"]))


def test_an_entry_that_was_changed_is_named(
    auditor: Person, live_acme: TenantKit, superuser_url: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET actor = 'x', recorded_at = '294276-12-31 23:59:59.999999+00'"
            " WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 2",
            [live_acme.id],
        )
    answer = auditor.post("audit/run/run-1/verify/", {}, follow=True)
    assert "Broken at entry #2" in text_of(answer)
    assert "is-bad" in answer.content.decode()
    answer = auditor.get("audit/run/run-1/")
    assert "at #2" in text_of(answer)
    assert "accused" not in text_of(answer)


@pytest.mark.parametrize("field", ["first", "last"])
@pytest.mark.parametrize("number", ["9223372036854775807", "9007199254740993", "9" * 40])
def test_a_number_that_no_entry_has_is_refused_beside_its_field(
    auditor: Person, field: str, number: str
) -> None:
    answer = auditor.post("audit/run/run-1/verify/", {field: number})
    assert answer.status_code == 422
    assert "No run has an entry of so high a number." in text_of(answer)
    assert f'value="{number}"' in answer.content.decode()


@pytest.mark.parametrize("field", ["first", "last"])
def test_the_highest_number_that_an_entry_can_have_is_looked_for(
    auditor: Person, field: str
) -> None:
    answer = auditor.post("audit/run/run-1/verify/", {field: "9007199254740991"}, follow=True)
    assert answer.status_code == 200


def test_a_result_says_how_to_verify_without_the_server(auditor: Person) -> None:
    answer = auditor.post("audit/run/run-1/verify/", {}, follow=True)
    assert "python3 verify_bundle.py evidence.zip --key KEY" in text_of(answer)
    assert "/audit/run/run-1/evidence/" in answer.content.decode()


def test_a_part_that_holds_says_so_and_calls_nothing_new_that_was_there(
    auditor: Person, live_acme: TenantKit
) -> None:
    answer = auditor.post("audit/run/run-1/verify/", {"first": "1", "last": "3"})
    page = answer["Location"]
    shown = text_of(auditor.get(page))
    assert "Not complete: #1 to #3 are intact, and the rest was not read" in shown
    assert "3 entries checked, #1 to #3." in shown
    assert "5 more were there and were not asked for." in shown
    assert "came since" not in shown
    assert "It says nothing of the entries that were not read." in shown
    fill(live_acme, 2)
    shown = text_of(auditor.get(page))
    assert "5 more were there and were not asked for." in shown
    assert "2 entries came since and are not part of this." in shown


def test_a_report_of_damage_claims_no_proof_of_what_is_stored(
    auditor: Person, live_acme: TenantKit, superuser_url: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE log_entry SET payload_text = '{}' WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 2",
            [live_acme.id],
        )
    shown = text_of(auditor.post("audit/run/run-1/verify/", {}, follow=True))
    assert "byte for byte" not in shown
    assert "it was the payload that was changed" in shown
    assert "It proves that what is stored of this run is not what was written" in shown
    assert "Entries #0 to #1 agree with each other" in shown
    assert "It does not prove that what comes after is right or wrong" in shown


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("entry_hash = sha256('x')", "its stored hash was changed"),
        ("actor = 'user:eve'", "what the entry says was changed"),
    ],
    ids=["the stored hash", "the content"],
)
def test_a_forged_hash_does_not_pass_for_the_expected_one(
    auditor: Person, live_acme: TenantKit, superuser_url: str, changed: str, said: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            f"UPDATE log_entry SET {changed} WHERE tenant_id = %s AND run_id = 'run-1' AND sequence = 2",
            [live_acme.id],
        )
    shown = text_of(auditor.post("audit/run/run-1/verify/", {}, follow=True))
    assert "Expected" not in shown
    assert "Stored hash" in shown
    assert "Recomputed from what is stored" in shown
    assert said in shown


def test_a_forged_hash_of_the_head_is_told_from_that_of_the_entry(
    auditor: Person, live_acme: TenantKit, superuser_url: str
) -> None:
    with attacker(superuser_url) as session:
        session.execute(
            "UPDATE run_head SET head_hash = sha256('x') WHERE tenant_id = %s AND run_id = 'run-1'",
            [live_acme.id],
        )
    shown = text_of(auditor.post("audit/run/run-1/verify/", {}, follow=True))
    assert "The run&#x27;s head says" in shown.replace("'", "&#x27;")
    assert "The last entry says" in shown
