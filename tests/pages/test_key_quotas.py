"""How much a key may write, as admins read it and set it on pages."""

from datetime import timedelta

import time_machine
from django.utils import timezone

from tests.builders import ApiClient, TenantKit
from tests.pages.people import person, text_of
from tests.pages.test_workspace import governance
from tests.records.builders import body_of


def prefix_of(client: ApiClient) -> str:
    return str(client.token).split("_")[1]


def write(client: ApiClient) -> int:
    note = {"type": "note", "scope": {"userId": "ann"}, "content": 1}
    return client.post("/v1/memory/facts", note).status_code


def test_an_admin_bounds_a_key_and_reads_what_it_used(acme: TenantKit) -> None:
    client = acme.client("agent", users=["ann"])
    key = f"admin/keys/{prefix_of(client)}/"
    # Within one hour of the clock, which the window is; who signs in does so then.
    with time_machine.travel(timezone.now().replace(minute=10), tick=True):
        admin = person(acme, "admin")
        assert "No quota" in text_of(admin.get(key))
        given = {"writes": "2", "bytes": "", "subjects": "5", "window_seconds": "3600"}
        assert admin.post(f"{key}quota", given)["Location"] == admin.path(key)
        assert [write(client) for _ in range(3)] == [201, 201, 429]
        for path in (key, "admin/keys/"):
            shown = text_of(admin.get(path))
            assert "2 of 2" in shown
            assert "1 of 5" in shown
            assert "ach hour" in shown
    wire = {"writes": 2, "subjects": 5, "windowSeconds": 3600}
    (logged,) = governance(acme, "key.quota")
    assert logged == {"type": "key.quota", "prefix": prefix_of(client), **wire}


def test_a_quota_is_taken_away_by_leaving_every_bound_empty(acme: TenantKit) -> None:
    admin, client = person(acme, "admin"), acme.client("agent", users=["ann"])
    key = f"admin/keys/{prefix_of(client)}/"
    admin.post(f"{key}quota", {"writes": "1", "window_seconds": "86400"})
    assert [write(client) for _ in range(2)] == [201, 429]
    assert 'value="1"' in admin.get(f"{key}quota").content.decode()
    admin.post(f"{key}quota", {"writes": "", "window_seconds": "86400"})
    assert write(client) == 201
    assert "No quota" in text_of(admin.get(key))


def test_a_window_that_only_the_api_sets_is_kept_by_the_form(acme: TenantKit) -> None:
    admin, client = person(acme, "admin"), acme.client("agent")
    prefix = prefix_of(client)
    path = f"/v1/memory/keys/{prefix}/quota"
    body_of(acme.client("admin").put(path, {"writes": 7, "windowSeconds": 90}), 200)
    assert "90 seconds" in text_of(admin.get(f"admin/keys/{prefix}/"))
    form = admin.get(f"admin/keys/{prefix}/quota").content.decode()
    assert '<option value="90" selected>90 seconds</option>' in form


def test_a_bound_that_is_none_is_refused_with_the_text_kept(acme: TenantKit) -> None:
    admin, client = person(acme, "admin"), acme.client("agent")
    path = f"admin/keys/{prefix_of(client)}/quota"
    for writes, window in (("0", "3600"), ("-1", "3600"), ("many", "3600"), ("1", "61")):
        answer = admin.post(path, {"writes": writes, "window_seconds": window})
        assert answer.status_code == 422
        assert f'value="{writes}"' in answer.content.decode()
    assert governance(acme, "key.quota") == []


def test_only_admins_who_proved_themselves_set_a_quota(acme: TenantKit) -> None:
    client = acme.client("agent")
    path, given = f"admin/keys/{prefix_of(client)}/quota", {"writes": "1", "window_seconds": "60"}
    for role in ("auditor", "person"):
        assert person(acme, role).post(path, given).status_code == 403
    admin = person(acme, "admin")
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        assert "Is it you?" in text_of(admin.post(path, given))
    assert governance(acme, "key.quota") == []


def test_a_key_that_ended_takes_no_quota(acme: TenantKit) -> None:
    admin, client = person(acme, "admin"), acme.client("agent")
    path = f"admin/keys/{prefix_of(client)}/"
    admin.post(f"{path}revoke")
    answer = admin.post(f"{path}quota", {"writes": "1", "window_seconds": "60"})
    assert "This key has ended" in text_of(answer)
    assert governance(acme, "key.quota") == []
