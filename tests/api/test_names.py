"""Names are compared, never matched: whatever signs they hold, each finds its own and no other's, in filters and containers.

Names that begin alike, differ in one sign, or hold what a pattern, a query or a path would take for something else.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from memory.embeddings.provider import get_provider
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import EVERY_ABILITY, MemberClient, member_client
from tests.api.makers import Place, new_key, new_name, record_body
from tests.api.rows import ROWS
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.rotation import one_in, shares

NAMES = (
    *("p1", "p10", "P1", "p1 ", "a_b", "aXb", "a%b", "a%", "ab", "%", "%%", "_", "__", "*", "?"),
    *("\\", "a\\b", "a\\%", "a\\_b", "acme", "acme-corp", "acme:x", "acme/x", "acme.x", ".*", "^a"),
    *(
        "' OR '1'='1",
        '"',
        "{}",
        "[]",
        "null",
        "NaN",
        "0",
        "é",
        "e\u0301",
        "a\u200bb",
        "😀",
        "\u202ea",
    ),
)
"""é as one sign and as two: the same to the eye, two names."""

ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]
FILTERS = [
    (endpoint, parameter.name)
    for endpoint in ALL
    for parameter in endpoint.operation.query.values()
    if parameter.schema.get("type") == "string"
    and not {"enum", "format"} & set(parameter.schema)
    and parameter.name not in ("cursor", "reveal")
]

HALF_OR_ALL = pytest.mark.parametrize(
    "share",
    [
        pytest.param(slice(0, None, 2), id="one half"),
        pytest.param(slice(None), marks=pytest.mark.full, id="all"),
    ],
)

pytestmark = pytest.mark.usefixtures("live_db")


@dataclass(frozen=True)
class Named:
    """A tenant that has one of each kind under every name: name → the id of what bears it."""

    kit: TenantKit
    place: Place
    of_type: dict[str, str]
    in_project: dict[str, str]
    in_org: dict[str, str]
    in_thread: dict[str, str]
    by_actor: dict[str, str]
    of_user: dict[str, str]
    complained_by: dict[str, str]
    mixed_run: str


@pytest.fixture(scope="module")
def named(django_db_setup: None, django_db_blocker: Any) -> Named:
    get_provider().embed(["once it is loaded, vectors come with the write"])
    with django_db_blocker.unblock():
        kit = make_tenant()
        place = Place(kit.client("admin", may=EVERY_ABILITY))

        def fact(name: str, type: str = "note", **scope: str) -> str:
            body = {"type": type, "scope": scope, "content": "said"}
            return str(place.make("POST", "/v1/memory/facts", body)["id"])

        def run(name: str) -> str:
            entry = {"kind": "tool-call", "scope": {"projectId": name}, "actor": name}
            run_id = new_name("run")
            place.make("POST", f"/v1/memory/runs/{run_id}/log", entry)
            return run_id

        def record(name: str) -> str:
            subject = {"type": "user", "id": name}
            body = record_body(place, subject=subject, key="travel.seat", value="said")
            return str(place.make("POST", "/v1/memory/records", body)["id"])

        def complaint(name: str) -> str:
            subject = {"type": "user", "id": name}
            body = record_body(place, subject=subject, key="travel.other", value="said")
            record_id = place.make("POST", "/v1/memory/records", body)["id"]
            path = f"/v1/memory/records/{record_id}/routes/wrong-person"
            return str(place.make("POST", path, {})["receipt"]["number"])

        mixed = new_name("run")
        entries = [
            {"kind": "tool-call", "scope": place.scope(), "actor": name, "id": f"by {name}"}
            for name in NAMES
        ]
        place.make("POST", f"/v1/memory/runs/{mixed}/log/batch", {"entries": entries})
        return Named(
            kit=kit,
            place=place,
            of_type={name: fact(name, type=name, projectId="elsewhere") for name in NAMES},
            in_project={name: fact(name, projectId=name) for name in NAMES},
            in_org={name: fact(name, orgId=name) for name in NAMES},
            in_thread={name: fact(name, threadId=name) for name in NAMES},
            by_actor={name: run(name) for name in NAMES},
            of_user={name: record(name) for name in NAMES},
            complained_by={name: complaint(name) for name in NAMES},
            mixed_run=mixed,
        )


def ids(client: ApiClient, url: str, query: dict[str, Any], key: str = "id") -> set[str]:
    told = client.get(url, {"limit": 200, **query})
    assert told.status_code == 200, told.content
    body = told.json()
    assert not body["hasMore"]
    return {one[key] for one in body["data"]}


FACTS, RUNS, RECORDS = "/v1/memory/facts", "/v1/memory/runs", "/v1/memory/records"
REVIEWS = "/v1/memory/reviews"
Found = Callable[[Named, str], tuple[set[str], set[str]]]
FINDING: dict[str, list[Found]] = {
    "memory.listFacts type": [
        lambda it, name: (ids(it.place.client, FACTS, {"type": name}), {it.of_type[name]})
    ],
    "memory.listFacts scope": [
        lambda it, name: (
            ids(it.place.client, FACTS, {"scope": json.dumps({"projectId": name})}),
            {it.in_project[name]},
        ),
        lambda it, name: (
            ids(it.place.client, FACTS, {"scope": json.dumps({"threadId": name})}),
            {it.in_thread[name]},
        ),
    ],
    "memory.listFacts scopeId": [
        lambda it, name: (
            ids(it.place.client, FACTS, {"scopeKind": "project", "scopeId": name}),
            {it.in_project[name]},
        ),
        lambda it, name: (
            ids(it.place.client, FACTS, {"scopeKind": "org", "scopeId": name}),
            {it.in_org[name]},
        ),
    ],
    "memory.listRuns actor": [
        lambda it, name: (
            ids(it.place.client, RUNS, {"actor": name}, "runId") - {it.mixed_run},
            {it.by_actor[name]},
        )
    ],
    "memory.readLog actor": [
        lambda it, name: (
            ids(it.place.client, f"{RUNS}/{it.mixed_run}/log", {"actor": name}),
            {f"by {name}"},
        )
    ],
    "memory.listRecords subject_id": [
        lambda it, name: (ids(it.place.client, RECORDS, {"subject_id": name}), {it.of_user[name]})
    ],
    "memory.listReviews subjectId": [
        lambda it, name: (
            ids(it.place.client, REVIEWS, {"subjectId": name}),
            {it.complained_by[name]},
        )
    ],
    "memory.listReviews writer": [
        lambda it, name: (ids(it.place.client, REVIEWS, {"writer": name}), set())
    ],
    "memory.listRecords key": [
        lambda it, name: (ids(it.place.client, RECORDS, {"key": name}), set()),
        lambda it, name: (
            ids(it.place.client, RECORDS, {"key": "travel.seat", "subject_id": name}),
            {it.of_user[name]},
        ),
    ],
}
WORDS = {"memory.listRecords q"}
"""Asks for words, which are not names: `test_no_sign_is_a_wild_card_among_words`."""


def test_every_filter_by_name_is_tried() -> None:
    assert {f"{endpoint.id} {name}" for endpoint, name in FILTERS} == set(FINDING) | WORDS


@pytest.mark.parametrize(("filter", "share"), shares(2, list(FINDING)))
def test_a_filter_finds_what_bears_the_name_and_nothing_else(
    filter: str, share: slice, named: Named
) -> None:
    for name in NAMES[share]:
        for find in FINDING[filter]:
            found, expected = find(named, name)
            assert found == expected, name


@pytest.mark.parametrize(("mode", "share"), shares(2, ["list", "keyword", "semantic", "both"]))
def test_a_retrieval_finds_what_bears_the_name_and_nothing_else(
    mode: str, share: slice, named: Named
) -> None:
    asked = {"mode": mode, "limit": 100, **({} if mode == "list" else {"query": "said"})}
    for name in NAMES[share]:
        for narrowed, expected in (
            ({"type": name}, named.of_type[name]),
            ({"scope": {"projectId": name}}, named.in_project[name]),
            ({"scope": {"orgId": name}}, named.in_org[name]),
            ({"scope": {"threadId": name}}, named.in_thread[name]),
        ):
            told = named.place.client.post("/v1/memory/retrieve", {**asked, **narrowed})
            assert told.status_code == 200, told.content
            found = [result["fact"]["id"] for result in told.json()["results"]]
            assert found == [expected], (name, narrowed)


def test_a_recall_is_about_who_bears_the_name(named: Named) -> None:
    for name in NAMES:
        for asked in (
            {"key": "travel.seat", "context": {"user_id": name}},
            {"key": "travel.seat", "context": {}, "subject": {"type": "user", "id": name}},
        ):
            told = named.place.client.post("/v1/memory/recall", asked)
            assert told.json()["record_id"] == named.of_user[name], (name, told.content)


def test_a_binding_holds_for_the_value_it_names(named: Named) -> None:
    key, user = new_key(), new_name("user")
    made = {}
    for name in NAMES:
        scope = {
            **record_body(named.place)["scope"],
            "level": "task",
            "bindings": {"task_id": name},
        }
        body = record_body(named.place, key=key, value=name, scope=scope)
        body["subject"] = {"type": "user", "id": user}
        made[name] = named.place.make("POST", RECORDS, body)["id"]
    for name in NAMES:
        context = {"user_id": user, "task_id": name}
        told = named.place.client.post("/v1/memory/recall", {"key": key, "context": context})
        assert told.json()["record_id"] == made[name], (name, told.content)


def test_a_key_prefix_ends_at_a_dot(named: Named) -> None:
    user = new_name("user")
    keys = ("a_b", "axb", "a_b.c", "a_bc", "a_b.c.d", "a", "a_b0.c")
    for key in keys:
        body = record_body(named.place, key=key, subject={"type": "user", "id": user})
        named.place.make("POST", RECORDS, body)
    for prefix, expected in (
        ("a_b", {"a_b", "a_b.c", "a_b.c.d"}),
        ("a_b.", {"a_b.c", "a_b.c.d"}),
        ("a", {"a"}),
        ("a_b.c", {"a_b.c", "a_b.c.d"}),
        ("_", set()),
        ("a_", set()),
    ):
        asked = {"key_prefix": prefix, "context": {"user_id": user}}
        told = named.place.client.post("/v1/memory/recall", asked)
        assert set(told.json()["results"]) == expected, prefix
    for prefix in ("%", "a%", "a*", "a\\_b", ".", ""):
        asked = {"key_prefix": prefix, "context": {"user_id": user}}
        told = named.place.client.post("/v1/memory/recall", asked)
        assert told.status_code == 400, prefix


def test_no_sign_is_a_wild_card_among_words(named: Named) -> None:
    user = new_name("user")
    made = {}
    for word in ("a_b", "aXb", "p1", "p10", "acme", "acmex"):
        body = record_body(named.place, value=word, subject={"type": "user", "id": user})
        made[word] = named.place.make("POST", RECORDS, body)["id"]
    for word, expected in (("a_b", {"a_b"}), ("p1", {"p1"}), ("p10", {"p10"}), ("acme", {"acme"})):
        found = ids(named.place.client, RECORDS, {"q": word, "subject_id": user})
        assert found == {made[one] for one in expected}, word
    for signs, plain in (
        ("a%", "a"),
        ("p?", "p"),
        ("p1*", "p1"),
        ("p1:*", "p1"),
        ("a & !b", "a b"),
    ):
        found = ids(named.place.client, RECORDS, {"q": signs, "subject_id": user})
        assert found <= ids(named.place.client, RECORDS, {"q": plain, "subject_id": user}), signs
    for signs in ("%", "_", "*", "%%", "\\", "'", ":*"):
        assert ids(named.place.client, RECORDS, {"q": signs, "subject_id": user}) == set(), signs


@pytest.mark.parametrize(("kind", "share"), shares(2, ["projects", "orgs", "threads"]))
def test_a_key_reads_the_containers_it_names_and_no_others(
    kind: str, share: slice, named: Named
) -> None:
    made = {"projects": named.in_project, "orgs": named.in_org, "threads": named.in_thread}[kind]
    for name in NAMES[share]:
        client = named.kit.client("agent", **{kind: [name]})
        runs = {named.by_actor[name]} if kind == "projects" else set()
        assert ids(client, FACTS, {}) == {made[name]}, name
        assert ids(client, RUNS, {}, "runId") == runs, name
        for mode in ("list", "keyword"):
            asked = {"mode": mode, "limit": 100, **({} if mode == "list" else {"query": "said"})}
            told = client.post("/v1/memory/retrieve", asked).json()
            assert [one["fact"]["id"] for one in told["results"]] == [made[name]], name


@HALF_OR_ALL
def test_a_key_reads_the_people_it_names_and_no_others(share: slice, named: Named) -> None:
    for name in NAMES[share]:
        client = named.kit.client("agent", users=[name])
        assert ids(client, RECORDS, {}) == {named.of_user[name]}, name
        told = client.post("/v1/memory/recall", {"key": "travel.seat", "context": {}}).json()
        assert told["record_id"] == named.of_user[name], name
        for other in ("p1", "p10", "%", "_"):
            if other != name:
                asked = {"key": "travel.seat", "context": {"user_id": other}}
                told = client.post("/v1/memory/recall", asked).json()
                assert (told["record_id"], told["decision"]) == (None, "none"), (name, other)


@HALF_OR_ALL
def test_an_id_in_a_path_is_that_of_one_thing(share: slice) -> None:
    place = Place(make_tenant().client("admin", may=EVERY_ABILITY))
    for name in NAMES:
        body = {"id": name, "type": "note", "scope": place.scope(), "content": name}
        place.make("POST", FACTS, body)
        place.make("POST", RECORDS, record_body(place, id=name, value=name))
        entry = {"id": name, "kind": "tool-call", "scope": place.scope(), "payload": name}
        place.make("POST", f"{RUNS}/{quote(name, safe='')}/log", entry)
        place.make("PUT", f"/v1/memory/types/{quote(name, safe='')}", {})
    for name in NAMES[share]:
        part = quote(name, safe="")
        client = place.client
        assert client.get(f"{FACTS}/{part}").json()["content"] == name
        assert client.get(f"{RECORDS}/{part}").json()["value"] == name
        assert client.get(f"/v1/memory/log/{part}").json()["payload"] == name
        assert client.get(f"/v1/memory/types/{part}").json()["type"] == name
        assert ids(client, f"{RUNS}/{part}/log", {}) == {name}
    left = set(NAMES)
    for name in NAMES[share]:
        part = quote(name, safe="")
        assert place.client.delete(f"{FACTS}/{part}").status_code == 200
        assert place.client.post(f"{RECORDS}/{part}/forget").status_code == 200
        left.remove(name)
        assert ids(place.client, FACTS, {}) & set(NAMES) == left, name
        assert ids(place.client, RECORDS, {}) & set(NAMES) == left, name


@pytest.mark.parametrize("endpoint", one_in(2, ALL), ids=lambda endpoint: endpoint.id)
def test_no_look_up_is_written_in_a_parameter_name(endpoint: Endpoint, named: Named) -> None:
    url = endpoint.route.url(**dict.fromkeys(endpoint.route.parameters, "x"))
    known = itertools.cycle([*endpoint.operation.query, "id", "tenant_id", "scope", "content"])
    tricks = (
        "{}__contains",
        "{}__startswith",
        "{}__regex",
        "{}__in",
        "{}[]",
        "{}[$ne]",
        "-{}",
        "{} ",
    )
    names = [trick.format(name) for name, trick in zip(known, tricks, strict=False)]
    for name in (*names, "_connector", "_negated", "topk", "top_k", "offset", "order_by"):
        body = {} if endpoint.takes_json else None
        told = named.place.client.request(endpoint.method, f"{url}?{urlencode({name: 'OR'})}", body)
        assert told.status_code == 400, (name, told.content)
        assert told.json()["error"]["code"] == "unknown-field", name


@HALF_OR_ALL
def test_a_session_that_names_no_tenant_or_nearly_one_is_nobody(share: slice, named: Named) -> None:
    member = member_client(named.kit, "admin")
    slug = named.kit.slug
    wrong = ("", " ", "null", "undefined", "%", "_", "*", "0", slug[:-1], slug + "0", slug.upper())
    asked = [one for one in ALL if one.method == "GET" and not one.route.parameters]
    for endpoint in asked[share]:
        url = endpoint.route.url()
        assert member.get(url).status_code == 200, endpoint.id
        for name in (
            *wrong,
            f"{slug},{slug}",
            f"{slug}%",
            f"{slug}\\",
            f"'{slug}'",
            "-".join(slug),
        ):
            told = MemberClient(client=member.client, slug=name).get(url)
            assert told.status_code == 401, (endpoint.id, name)
        assert ApiClient(client=member.client).get(url).status_code == 401, endpoint.id
