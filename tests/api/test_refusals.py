"""What every route refuses in the one envelope, whatever is wrong: the media type, the address, or a fault of ours."""

import json
from typing import Any

import pytest
from django.http import HttpResponse
from structlog.testing import capture_logs

from memory.api.views import facts as views
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import World
from tests.api.rows import ROWS
from tests.builders import TenantKit

_JSON = [endpoint for endpoint in endpoints() if endpoint.takes_json and endpoint.id in ROWS]
NO_JSON = (
    "",
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json-patch+json",
    "application/xml",
    "json",
)


def refusal(answer: HttpResponse) -> tuple[int, str]:
    """Status and code, the envelope being whole."""
    assert answer["Content-Type"] == "application/json"
    told = json.loads(answer.content)
    assert set(told) == {"error"}
    assert set(told["error"]) == {"code", "message", "details", "requestId"}
    assert told["error"]["requestId"] == answer["X-Request-Id"]
    return answer.status_code, str(told["error"]["code"])


@pytest.mark.parametrize("endpoint", _JSON, ids=lambda endpoint: endpoint.id)
def test_a_body_that_is_not_said_to_be_json_is_refused(
    endpoint: Endpoint, live_db: None, world: World
) -> None:
    row = ROWS[endpoint.id]
    client = world.callers[min(row.statuses)]
    url = row.url(endpoint, row.ids_in(world.mine))
    raw = json.dumps(row.smallest(world.mine) or {"reason": "x"})
    headers = {"Authorization": f"Bearer {client.token}"} if client.token else {}
    headers["Kindmem-Tenant"] = getattr(client, "slug", "")
    if not headers["Kindmem-Tenant"]:
        del headers["Kindmem-Tenant"]
    for media in NO_JSON:
        told = client.client.generic(endpoint.method, url, raw, content_type=media, headers=headers)
        assert refusal(told) == (415, "unsupported-media-type"), media
    for media in ("application/json; charset=utf-8", "APPLICATION/JSON", " application/json "):
        told = client.client.generic(endpoint.method, url, raw, content_type=media, headers=headers)
        assert told.status_code != 415, media


@pytest.mark.parametrize(
    "path",
    [
        "/v1/",
        "/v1/memory",
        "/v1/memory/",
        "/v1/memory/nothing",
        "/v1/memory/facts/",
        "/v2/memory/facts",
        "/v1/memory/nothing/x/revisions",
    ],
)
def test_an_address_where_nothing_is_answers_in_the_envelope(acme: TenantKit, path: str) -> None:
    admin = acme.client("admin")
    for method in ("GET", "POST", "DELETE"):
        assert refusal(admin.request(method, path, {})) == (404, "not-found"), method


def test_a_fault_of_ours_tells_nothing_but_where_to_find_it(
    acme: TenantKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **more: Any) -> Any:
        raise ValueError("her number is 555-canary")

    monkeypatch.setattr(views, "list_facts", fails)
    with capture_logs() as said:
        answer = acme.client("admin").get("/v1/memory/facts")
    assert refusal(answer) == (500, "internal-error")
    assert b"canary" not in answer.content
    assert b"Traceback" not in answer.content
    (logged,) = [line for line in said if line["log_level"] == "error"]
    assert logged["error"] == "ValueError"
    assert "canary" not in json.dumps(said, default=str)


def test_who_takes_no_json_is_told_so_in_json(acme: TenantKit) -> None:
    admin = acme.client("admin")
    told = admin.post("/v1/memory/retrieve", {"mode": "list"}, Accept="text/html")
    assert refusal(told) == (400, "bad-input")
    for accept in ("*/*", "application/*", "text/html, application/json;q=0.9"):
        assert admin.post("/v1/memory/retrieve", {"mode": "list"}, Accept=accept).status_code == 200
