"""Time stamps of RFC 3161: an authority outside says when a checkpoint existed, and an auditor checks it offline."""

import base64
import json
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from structlog.testing import capture_logs

from memory.access import system_principal
from memory.actions.stamp_checkpoint import stamp_checkpoint
from memory.housekeeping import stamp
from memory.integrity import verify_bundle
from memory.integrity.anchors import read_anchors, stamps_path
from memory.integrity.timestamps import (
    StampFailed,
    TimestampSettingError,
    check_stamp,
    chosen_authorities,
    stamp_bytes,
)
from memory.tenancy import tenant_context
from memory.work import WORKS
from tests.builders import TenantKit
from tests.integrity.logs import fill, seal, verified
from tests.integrity.test_bundle import checked, exported, parts_of, signed_again
from tests.integrity.tsa import Authority, serving
from tests.pages.people import person, text_of


class Stamping:
    """A tenant, an authority, and the worker's turn."""

    def __init__(self, tenant: TenantKit, folder: Path, settings: Any) -> None:
        self.tenant = tenant
        self.settings = settings
        self.authority = Authority(folder)

    def choose(self, url: str, roots: Path | None = None) -> None:
        self.settings.KINDMEM_TIMESTAMPS = f"tsa.example {url} {roots or self.authority.roots}"

    def turn(self, silent: set[str] | None = None) -> int:
        return stamp_checkpoint(
            principal=system_principal(self.tenant.id, self.tenant.slug, id="stamper"),
            authorities=chosen_authorities(),
            silent=set() if silent is None else silent,
            seconds=5,
        )

    def told(self, size: int) -> dict[str, Any]:
        answer = self.tenant.client("auditor").get(f"/v1/memory/checkpoints/{size}")
        assert answer.status_code == 200
        [one] = answer.json()["timestamps"]
        assert one["name"] == "tsa.example"
        return dict(one)

    def due(self) -> None:
        with tenant_context(self.tenant.id), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE witness_standing SET retry_at = now() - interval '1 second' WHERE tenant_id = %s::uuid",
                [self.tenant.id],
            )


@pytest.fixture
def stamping(live_acme: TenantKit, tmp_path: Path, settings: Any) -> Stamping:
    settings.KINDMEM_DEVELOPMENT = True
    return Stamping(live_acme, tmp_path, settings)


def test_the_newest_checkpoint_is_stamped_and_the_stamp_kept_beside_it_and_its_anchor(
    stamping: Stamping,
) -> None:
    stamping.authority.now = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)
    with serving(stamping.authority.answer) as url:
        stamping.choose(url)
        assert stamping.turn() == 0, "nothing is sealed yet"
        fill(stamping.tenant)
        size = seal(stamping.tenant).size
        assert stamping.told(size) == {"name": "tsa.example", "state": "waiting"}
        assert stamping.turn() == 1
    told = stamping.told(size)
    assert (told["state"], told["stampedAt"]) == ("stamped", "2026-11-30T12:00:05.000Z")

    [line] = stamps_path(stamping.tenant.slug).read_text().splitlines()
    kept = json.loads(line)
    anchored = read_anchors(stamping.tenant.slug).last
    assert anchored is not None
    assert (kept["note"], kept["size"]) == (anchored.note_text, size)
    assert kept["stamp"] == told["stamp"]
    assert stamps_path(stamping.tenant.slug).stat().st_mode & 0o777 == 0o600
    [authority] = chosen_authorities()
    check_stamp(authority, stamp_bytes(kept["stamp"]), kept["note"])
    with pytest.raises(StampFailed):
        check_stamp(authority, stamp_bytes(kept["stamp"]), kept["note"] + "x")
    assert read_anchors(stamping.tenant.slug).last == anchored, "the anchors read as before"
    assert verified(stamping.tenant).state.value == "verified"


def test_an_authority_is_asked_once_in_a_while_and_only_for_something_newer(
    stamping: Stamping,
) -> None:
    with serving(stamping.authority.answer) as url:
        stamping.choose(url)
        fill(stamping.tenant)
        first = seal(stamping.tenant).size
        assert stamping.turn() == 1
        fill(stamping.tenant, 3, "run-2")
        second = seal(stamping.tenant).size
        assert stamping.turn() == 0, "an hour has not passed"
        stamping.settings.KINDMEM_TIMESTAMP_SECONDS = 0
        assert stamping.turn() == 1
        assert stamping.turn() == 0, "there is nothing newer"
        assert stamping.authority.asked == 2
    assert [stamping.told(size)["state"] for size in (first, second)] == ["stamped", "stamped"]
    stamping.settings.KINDMEM_TIMESTAMPS = ""
    assert stamping.told(first)["state"] == "stamped", "also when the authority is chosen no more"


def test_the_page_of_chain_health_says_what_was_stamped_when(stamping: Stamping) -> None:
    stamping.authority.now = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)
    auditor = person(stamping.tenant, "auditor")
    fill(stamping.tenant)
    size = seal(stamping.tenant).size
    with serving(lambda request: b"", status=503) as url:
        stamping.choose(url)
        assert stamping.turn() == 0
    shown = text_of(auditor.get("audit/health/"))
    assert "Time stamp tsa.example not yet · no answer to the last request: unavailable" in shown
    with serving(stamping.authority.answer) as url:
        stamping.choose(url)
        stamping.due()
        assert stamping.turn() == 1
    page = auditor.get("audit/health/")
    assert f"Time stamp tsa.example checkpoint {size}" in text_of(page)
    assert 'datetime="2026-11-30T12:00:05.000Z"' in page.content.decode()


def garbage(authority: Authority) -> None:
    authority.answer = lambda request: b"\x30\x03abc"  # type: ignore[method-assign]  # it answers so


def refusing(authority: Authority) -> None:
    authority.is_refusing = True


def other_text(authority: Authority) -> None:
    authority.imprint = bytes(32)


def other_nonce(authority: Authority) -> None:
    authority.nonce = b"\x05"


def expired(authority: Authority) -> None:
    authority.now = datetime.now(UTC) + timedelta(days=4000)


def before_the_certificate(authority: Authority) -> None:
    authority.now = datetime.now(UTC) - timedelta(days=4000)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (garbage, "answer-malformed"),
        (refusing, "request-refused"),
        (other_text, "bad-cosignature"),
        (other_nonce, "bad-cosignature"),
        (expired, "bad-cosignature"),
        (before_the_certificate, "bad-cosignature"),
    ],
)
def test_a_stamp_that_does_not_hold_is_not_kept_and_is_asked_for_again(
    spoil: Callable[[Authority], None], reason: str, stamping: Stamping
) -> None:
    good = stamping.authority
    bad = Authority(good.folder / "..")
    bad.__dict__.update(good.__dict__)
    spoil(bad)
    fill(stamping.tenant)
    size = seal(stamping.tenant).size
    with serving(bad.answer) as url, capture_logs() as logs:
        stamping.choose(url)
        assert stamping.turn() == 0
        assert stamping.turn() == 0, "it waits"
        stamping.due()
        assert stamping.turn() == 0
    told = stamping.told(size)
    assert (told["state"], told["failure"]) == ("failing", reason)
    said = [one for one in logs if "time stamp" in one["event"]]
    assert len(said) == 1, "said once"
    assert not stamps_path(stamping.tenant.slug).exists()
    with serving(good.answer) as url:
        stamping.choose(url)
        stamping.due()
        assert stamping.turn() == 1
    assert stamping.told(size)["state"] == "stamped"


def test_an_authority_that_fails_or_is_not_there_holds_nothing_up(stamping: Stamping) -> None:
    fill(stamping.tenant)
    size = seal(stamping.tenant).size
    with serving(lambda request: b"", status=503) as url:
        stamping.choose(url)
        assert stamping.turn() == 0
        assert stamping.told(size)["failure"] == "unavailable"
    stamping.due()
    silent: set[str] = set()
    assert stamping.turn(silent) == 0, "nobody listens there now"
    assert stamping.told(size)["failure"] == "unreachable"
    assert silent == {"tsa.example"}
    stamping.settings.KINDMEM_DEVELOPMENT = False
    stamping.due()
    assert stamping.turn() == 0
    assert stamping.told(size)["failure"] == "fetch-refused", "the fetcher's rules hold here, too"


def test_an_authority_under_other_roots_is_not_believed(stamping: Stamping, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other")
    fill(stamping.tenant)
    size = seal(stamping.tenant).size
    with serving(stranger.answer) as url:
        stamping.choose(url)
        assert stamping.turn() == 0
    assert stamping.told(size)["failure"] == "bad-cosignature"


def test_the_worker_has_time_stamps_made_beside_its_other_work(stamping: Stamping) -> None:
    # An authority that is silent holds up nothing that waits on nobody.
    assert WORKS["stamp"].queue != WORKS["seal"].queue
    stamp()  # without an authority there is nothing to do
    fill(stamping.tenant)
    size = seal(stamping.tenant).size
    with serving(stamping.authority.answer) as url:
        stamping.choose(url)
        stamp()
    assert stamping.told(size)["state"] == "stamped"


@pytest.mark.parametrize(
    "text",
    [
        "a https://a.example",
        "a b https://a.example x",
        "a/b https://a.example PEM",
        "a u /none.pem",
    ],
)
def test_a_setting_that_names_no_authority_is_refused(
    text: str, settings: Any, tmp_path: Path
) -> None:
    settings.KINDMEM_TIMESTAMPS = text.replace("PEM", str(Authority(tmp_path).roots))
    with pytest.raises(TimestampSettingError):
        chosen_authorities()


def test_two_authorities_of_one_name_are_refused(settings: Any, tmp_path: Path) -> None:
    roots = Authority(tmp_path).roots
    settings.KINDMEM_TIMESTAMPS = f"a https://a.example {roots}\na https://b.example {roots}"
    with pytest.raises(TimestampSettingError):
        chosen_authorities()


def test_without_the_extra_everything_works_but_the_setting(
    stamping: Stamping, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serving(stamping.authority.answer) as url:
        stamping.choose(url)
        fill(stamping.tenant)
        size = seal(stamping.tenant).size
        assert stamping.turn() == 1
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    stamping.settings.KINDMEM_TIMESTAMPS = ""
    fill(stamping.tenant, 2, "run-2")
    assert seal(stamping.tenant).size > size
    assert verified(stamping.tenant).state.value == "verified"
    assert stamping.told(size)["state"] == "stamped", "a stamp is read without it"
    assert checked(exported(stamping.tenant, tmp_path))[0] in (0, 15)
    stamping.settings.KINDMEM_TIMESTAMPS = f"b {url} {stamping.authority.roots}"
    with pytest.raises(TimestampSettingError, match=r"kindmem\[timestamps\]"):
        chosen_authorities()


@pytest.fixture
def stamped(stamping: Stamping) -> Stamping:
    """Eight entries stamped, three more sealed after it."""
    stamping.authority.now = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)
    with serving(stamping.authority.answer) as url:
        stamping.choose(url)
        fill(stamping.tenant, 8)
        seal(stamping.tenant)
        assert stamping.turn() == 1
    fill(stamping.tenant, 3)
    seal(stamping.tenant)
    return stamping


SAID = {"at": "20261130120005Z", "to": 7}


def test_a_bundle_says_which_entries_existed_when_and_who_signed_that(
    stamped: Stamping, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(stamped.tenant, tmp_path)
    code, told = checked(path)
    assert (code, told["timestamps"]) == (15, {"tsa.example": {**SAID, "signatureCheckedBy": None}})

    roots = ("--timestamp-roots", str(stamped.authority.roots))
    by = checked(path, *roots)[1]["timestamps"]["tsa.example"]["signatureCheckedBy"]
    assert by == "rfc3161-client"
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    by = checked(path, *roots)[1]["timestamps"]["tsa.example"]["signatureCheckedBy"]
    assert by == ("openssl" if shutil.which("openssl") else None)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, told = checked(path, *roots)
    assert (code, told["timestamps"]["tsa.example"]["signatureCheckedBy"]) == (15, None)


def test_a_bundle_whose_stamp_is_of_something_else_is_tampered_with(
    stamped: Stamping, tmp_path: Path
) -> None:
    parts = parts_of(exported(stamped.tenant, tmp_path))
    line = json.loads(parts["timestamps.jsonl"])

    def judged(*options: str, **changes: Any) -> dict[str, Any]:
        data = json.dumps({**line, **changes}).encode()
        code, told = checked(signed_again({**parts, "timestamps.jsonl": data}, tmp_path), *options)
        assert code == 10, changes
        return dict(told["firstBad"])

    other = Authority(tmp_path)
    (tmp_path / "s").mkdir()
    roots = ("--timestamp-roots", str(Authority(tmp_path / "s").roots))
    assert judged(*roots)["class"] == "anchor", "another authority"
    answer = bytearray(base64.b64decode(line["stamp"]))
    answer[-5] ^= 1
    spoiled = base64.b64encode(bytes(answer)).decode()
    stamped_roots = ("--timestamp-roots", str(tmp_path / "true.pem"))
    (tmp_path / "true.pem").write_bytes(_pem(stamped.authority))
    assert judged(*stamped_roots, stamp=spoiled)["class"] == "anchor", (
        "a signature that was touched"
    )
    for_other = other.answer(_request(b"another text"))
    assert judged(stamp=base64.b64encode(for_other).decode())["class"] == "anchor"
    assert judged(path=[verify_bundle.tag(b"x")])["class"] == "checkpoint", "no proof of the start"
    assert judged(note=line["note"].replace("\n", "\n\n", 1))["class"] in ("checkpoint", "content")


def _pem(authority: Authority) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return authority.root.public_bytes(Encoding.PEM)


def _request(data: bytes) -> bytes:
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    built = TimestampRequestBuilder(data=data, hash_algorithm=HashAlgorithm.SHA256).build()
    return bytes(built.as_bytes())
