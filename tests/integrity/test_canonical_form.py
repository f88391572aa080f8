"""A stored text whose hash fits and that is no canonical JSON: both verifiers, and the one of bundles, name it at its place."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.admission import MAX_INTEGER
from memory.canonical import canonical
from memory.integrity import verify_bundle
from memory.integrity.canonical_form import first_not_canonical, is_canonical
from memory.integrity.states import State, Tampering
from tests.builders import TenantKit
from tests.integrity.hands import Hands
from tests.integrity.logs import RUN, attacker, fill, seal, verified_twice, writer
from tests.integrity.test_bundle import checked, exported

NOT_CANONICAL = [
    "not json",
    '{"b":1,"a":2}',
    '{"a": 1}',
    '{"a":1,"a":2}',
    '{"a":1.0}',
    '{"a":1e2}',
    '{"a":-0}',
    '{"a":1e-07}',
    '"\\u0041"',
    '"\\/"',
    '{"a":NaN}',
    "[1,2",
    "1]",
    '{"a":9007199254740993}',
    '{"a":{"d":1,"c":2}}',
    '"\\u001F"',
    '{"\ue000":1,"\U00010000":2}',
    " 1",
    "",
]
CANONICAL = [
    "1",
    "1.5",
    "1e-7",
    "null",
    '""',
    "{}",
    '{"\U00010000":1,"\ue000":2}',
    '{"a":[1,{"b":"\u2028/"}],"c":0.000001}',
    '"\\u001f\\n\\""',
    '{"10":1,"9":2,"a":3}',
]


@pytest.mark.parametrize("text", NOT_CANONICAL)
def test_what_is_not_canonical_is_found_among_many_that_are(text: str) -> None:
    assert not is_canonical(text)
    for place in (0, 3, 7):
        texts = [*CANONICAL[:place], text, *CANONICAL[place:]]
        assert first_not_canonical(texts) == place
    assert first_not_canonical([text, text]) == 0


def test_what_is_canonical_is_told_at_once_and_one_by_one_alike() -> None:
    assert first_not_canonical([]) is None
    assert first_not_canonical(CANONICAL) is None
    assert all(is_canonical(text) for text in CANONICAL)
    assert all(verify_bundle.canonical(json.loads(text)) == text for text in CANONICAL)


def test_no_text_reaches_into_the_next_one() -> None:
    assert first_not_canonical(["[1", "2]"]) == 0
    assert first_not_canonical(["[1", "2],3"]) == 0
    assert first_not_canonical(["1,2", "3"]) == 0


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False, max_value=2.0**52, min_value=-(2.0**52))
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.lists(VALUES, min_size=1, max_size=6))
def test_every_canonical_text_is_told_canonical_by_each_of_the_three(values: list[object]) -> None:
    texts = [canonical(value) for value in values]
    assert first_not_canonical(texts) is None
    assert all(verify_bundle.canonical(json.loads(text)) == text for text in texts)
    place = random.Random(len(texts)).randrange(len(texts))
    assert first_not_canonical([*texts[:place], texts[place] + " ", *texts[place + 1 :]]) == place


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("text", ["no json at all", '{"b":1,"a":2}', '{"a": 1}', '{"a":1.0}'])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_payload_whose_hash_fits_and_that_is_no_canonical_json_is_named(
    version: int,
    text: str,
    is_sealed: bool,
    live_acme: TenantKit,
    superuser_url: str,
    tmp_path: Path,
) -> None:
    fill(live_acme, 5, by=writer(live_acme, hash_version=version))
    with attacker(superuser_url) as session:
        hands = Hands(session, live_acme, keeps_constraints=True)
        rows = hands.rehashed(RUN, hands.edited(RUN, 3, payload_text=text), 3)
        hands.put(RUN, rows)
        session.execute(
            "UPDATE run_head SET head_hash = %s, prev_hash = %s WHERE tenant_id = %s AND run_id = %s",
            [rows[-1].entry_hash, rows[-1].prev_hash, live_acme.id, RUN],
        )
    if is_sealed:
        seal(live_acme)
    report = verified_twice(live_acme)
    bad = report.first_bad
    assert report.state is State.TAMPERED
    assert bad is not None
    assert (bad.sequence, bad.tampering, bad.expected) == (3, Tampering.CONTENT, "canonical JSON")
    answer = live_acme.client("auditor").get(f"/v1/memory/runs/{RUN}/log", {"reveal": "incident"})
    assert answer.status_code == 200
    entry = answer.json()["data"][3]
    assert entry.get("meta", {}).get("damaged", False) is (text == "no json at all")
    code, told = checked(exported(live_acme, tmp_path))
    assert (code, told["firstBad"]["class"], told["firstBad"]["place"]) == (10, "content", 3)


def test_a_scope_that_is_no_canonical_json_is_named(
    live_acme: TenantKit, superuser_url: str
) -> None:
    fill(live_acme, 5)
    scope = f'{{"tenantId":"{live_acme.slug}","projectId":"p1"}}'
    with attacker(superuser_url) as session:
        hands = Hands(session, live_acme, keeps_constraints=True)
        rows = hands.rehashed(RUN, hands.edited(RUN, 2, scope_text=scope), 2)
        hands.put(RUN, rows)
        session.execute(
            "UPDATE run_head SET head_hash = %s, prev_hash = %s WHERE tenant_id = %s AND run_id = %s",
            [rows[-1].entry_hash, rows[-1].prev_hash, live_acme.id, RUN],
        )
    bad = verified_twice(live_acme).first_bad
    assert bad is not None
    assert (bad.sequence, bad.tampering, bad.expected) == (2, Tampering.CONTENT, "canonical JSON")
