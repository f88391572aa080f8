"""A writer's clock that is a few minutes ahead of ours: what was forgotten or corrected stays so, and newer words count."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.builders import TenantKit
from tests.import_records.files import codes, file_of, imported, whole
from tests.records.builders import a_record, body_of, refusal
from tests.records.conftest import ANN, RECORDS, Memory


def ahead(minutes: float = 4) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def test_what_was_forgotten_is_not_newer_than_its_end_when_it_is_sent_again(app: Memory) -> None:
    body = a_record("aisle", captured_at=ahead())
    record = body_of(app.client.post(RECORDS, body), 201)
    app.forget(record["id"])
    refusal(app.client.post(RECORDS, body), 409, "forgotten")
    assert app.recall()["decision"] == "none"
    # The same clock, a moment later: somebody says so anew.
    body_of(app.client.post(RECORDS, a_record("aisle", captured_at=ahead(4.5))), 201)


def test_what_was_corrected_is_not_newer_than_its_correction_when_it_is_sent_again(
    app: Memory,
) -> None:
    body = a_record("aisle", captured_at=ahead())
    body_of(app.client.post(RECORDS, body), 201)
    wider = {**ANN, "trip_id": "T1", "broaden_to": {"level": "user", "bindings": {}}}
    app.correct("window", context=wider, broaden=True)
    refusal(app.client.post(RECORDS, body), 409, "retired")
    assert app.recall()["value"] == "window"


def test_what_a_newer_word_replaced_is_not_newer_when_it_is_sent_again(app: Memory) -> None:
    body = a_record("aisle", captured_at=ahead())
    body_of(app.client.post(RECORDS, body), 201)
    app.remember("window")
    refusal(app.client.post(RECORDS, body), 409, "retired")
    assert app.recall()["value"] == "window"


def test_an_import_brings_back_nothing_that_was_forgotten(
    acme: TenantKit, app: Memory, tmp_path: Path
) -> None:
    at = ahead()
    app.forget(app.remember("aisle", captured_at=at)["id"])
    path = file_of(tmp_path, whole("aisle", id="again", captured_at=at))
    assert codes(imported(acme, path, refused=1)) == [("line 1", "forgotten")]
    assert app.recall()["decision"] == "none"
