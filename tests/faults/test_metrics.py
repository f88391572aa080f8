"""What /metrics says of a served product: requests of all workers by route and status, and how late the worker is."""

import http.client
import re

from tests.api.web_server import Web


def get(web: Web, path: str, token: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("localhost", web.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_requests_are_counted_by_route_and_status_and_by_nobody(web: Web) -> None:
    token = web.client.token
    assert get(web, "/v1/memory/facts/never-there", token)[0] == 404
    assert get(web, "/v1/memory/me", token)[0] == 200
    assert get(web, "/v1/memory/me")[0] == 401
    status, shown = get(web, "/metrics")
    assert status == 200
    counted = dict(re.findall(r"kindmem_requests_total\{([^}]*)\} (\S+)", shown))
    fact = 'method="GET",route="v1/memory/facts/<id:fact_id>",status="404"'
    assert float(counted[fact]) >= 1
    me = 'method="GET",route="v1/memory/me",status="{}"'
    assert {float(counted[me.format(one)]) >= 1 for one in (200, 401)} == {True}
    assert "kindmem_request_seconds_bucket" in shown
    assert re.search(r"^kindmem_worker_lag_seconds \S+$", shown, re.MULTILINE)
    assert "never-there" not in shown
    assert (token or "")[4:14] not in shown
