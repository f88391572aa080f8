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
