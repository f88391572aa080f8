"""Each request's line in the log says when, where, what and who: the caller by a key's prefix or an account's number, no more."""

import json
from typing import Any

from structlog.testing import capture_logs

from tests.builders import ApiClient, TenantKit
from tests.pages.people import person


def lines_of(said: list[Any]) -> list[Any]:
    return [line for line in said if line["event"] == "request"]


def test_the_line_names_the_key_by_its_prefix_also_when_it_is_refused(acme: TenantKit) -> None:
    client = acme.client("agent", projects=["p1"])
    assert client.token is not None
    prefix = client.token.removeprefix("kmk_")[:10]
    with capture_logs() as said:
        client.get("/v1/memory/me")
        client.post(
            "/v1/memory/facts", {"type": "note", "scope": {"projectId": "p2"}, "content": 1}
        )
        client.get("/v1/memory/facts/none")
    lines = lines_of(said)
    assert [line["status"] for line in lines] == [200, 403, 404]
    assert {line["caller"] for line in lines} == {f"service:{prefix}"}
    assert client.token not in json.dumps(said)


def test_the_line_names_a_signed_in_person_by_the_account_and_a_stranger_not_at_all(
    acme: TenantKit,
) -> None:
    ann = person(acme, "auditor")
    with capture_logs() as said:
        ann.browser.get("/v1/memory/me", headers={"Kindmem-Tenant": acme.slug})
        ApiClient("kmk_" + "x" * 40).get("/v1/memory/me")
        ApiClient().get("/v1/memory/me")
    assert [line["caller"] for line in lines_of(said)] == [f"user:{ann.user_id}", None, None]
    assert ann.email not in json.dumps(said)
