"""Keys over the API and on the pages: a token is shown once, whatever is asked again; and no key makes a stronger one."""

import re
from datetime import timedelta
from typing import Any

import time_machine
from django.db import connection
from django.utils import timezone

from memory.models import ApiKey
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.pages.people import Person, person, text_of
from tests.records.builders import body_of, refusal

BODY = {"name": "booker", "role": "agent", "grants": {"projects": ["trips"]}, "abilities": ["read"]}
TOKEN = re.compile(r"kmk_[a-z0-9]{10}_[A-Za-z0-9_-]{43}")


def made(kit: TenantKit, body: dict[str, Any] | None = None) -> dict[str, Any]:
    return dict(body_of(kit.client("admin").post("/v1/memory/keys", body or BODY), 201))


def governance(kit: TenantKit, *types: str) -> list[dict[str, Any]]:
    log = kit.client("auditor").get("/v1/memory/runs/kindmem.governance/log?limit=200")
    return [one["payload"] for one in log.json()["data"] if one["payload"]["type"] in types]


def test_a_made_key_works_as_it_was_made_and_only_its_answer_has_the_token(acme: TenantKit) -> None:
    told = made(acme)
    assert TOKEN.fullmatch(told["token"])
    me = ApiClient(told["token"]).get("/v1/memory/me").json()
    assert (me["abilities"], me["grants"]["projects"]) == (["read"], ["trips"])
    admin = acme.client("admin")
    for path in ("/v1/memory/keys", f"/v1/memory/keys/{told['key']['prefix']}"):
        assert told["token"] not in admin.get(path).content.decode()
    assert {"type": "key.created", "prefix": told["key"]["prefix"], "role": "agent"} in governance(
        acme, "key.created"
    )


def test_a_retry_answers_the_same_key_without_its_token_and_the_token_is_nowhere_stored(
    acme: TenantKit,
) -> None:
    admin = acme.client("admin")
    first = body_of(admin.post("/v1/memory/keys", BODY, Idempotency_Key="k1"), 201)
    again = admin.post("/v1/memory/keys", BODY, Idempotency_Key="k1")
    assert again["Idempotency-Replayed"] == "true"
    assert body_of(again, 201) == {"key": first["key"]}
    secret = first["token"].rpartition("_")[2]
    with tenant_context(acme.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM idempotency_key WHERE position(%s IN answer) > 0", [secret]
        )
        assert cursor.fetchone() == (0,)
    prefix = first["key"]["prefix"]
    path = f"/v1/memory/keys/{prefix}/rotate"
    turned = body_of(admin.post(path, {}, Idempotency_Key="k2"), 201)
    assert turned["token"]
    assert turned["replaces"] == prefix
    assert "token" not in body_of(admin.post(path, {}, Idempotency_Key="k2"), 201)


def test_keys_are_listed_newest_first_page_by_page_and_by_state(acme: TenantKit) -> None:
    admin = acme.client("admin")
    prefixes = [made(acme)["key"]["prefix"] for _ in range(3)]
    admin.post(f"/v1/memory/keys/{prefixes[0]}/revoke")
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = admin.get("/v1/memory/keys", query).json()
        seen += [one["prefix"] for one in page["data"]]
        if not page["hasMore"]:
            break
        query["cursor"] = page["nextCursor"]
    assert [one for one in seen if one in prefixes] == prefixes[::-1]
    assert len(seen) == len(set(seen))
    for status, expected in (("revoked", {prefixes[0]}), ("ended", {prefixes[0]})):
        page = admin.get("/v1/memory/keys", {"status": status}).json()
        assert {one["prefix"] for one in page["data"]} == expected
    active = {one["prefix"] for one in admin.get("/v1/memory/keys?status=active").json()["data"]}
    assert not active & {prefixes[0]}
    assert set(prefixes[1:]) <= active


def test_after_rotation_both_work_until_the_overlap_is_over(acme: TenantKit) -> None:
    old = made(acme)
    path = f"/v1/memory/keys/{old['key']['prefix']}/rotate"
    new = body_of(acme.client("admin").post(path, {"overlapHours": 2}), 201)
    assert new["key"]["grants"] == old["key"]["grants"]
    for token in (old["token"], new["token"]):
        assert ApiClient(token).get("/v1/memory/me").status_code == 200
    with tenant_context(acme.id):
        ends = ApiKey.objects.get(tenant_id=acme.id, prefix=old["key"]["prefix"]).expires_at
    assert timedelta(hours=1.9) < ends - timezone.now() <= timedelta(hours=2)


def test_a_revoked_key_is_refused_at_once_and_never_rotated(acme: TenantKit) -> None:
    told, admin = made(acme), acme.client("admin")
    path = f"/v1/memory/keys/{told['key']['prefix']}"
    assert body_of(admin.post(f"{path}/revoke"), 200)["status"] == "revoked"
    refusal(ApiClient(told["token"]).get("/v1/memory/me"), 401, "auth-revoked")
    refusal(admin.post(f"{path}/rotate"), 422, "invariant-violated")
    body_of(admin.post(f"{path}/revoke"), 200)
    assert len(governance(acme, "key.revoked")) == 1


def test_no_key_makes_one_that_may_do_more_than_itself_and_none_makes_an_admins(
    acme: TenantKit,
) -> None:
    admin = acme.client("admin")
    refusal(
        admin.post("/v1/memory/keys", {**BODY, "abilities": ["tenant-wide"]}),
        403,
        "permission-denied",
    )
    refusal(admin.post("/v1/memory/keys", {"name": "x", "role": "admin"}), 403, "permission-denied")
    for role in ("agent", "app", "auditor"):
        refusal(acme.client(role).post("/v1/memory/keys", BODY), 403, "permission-denied")


def test_a_key_of_another_tenant_is_one_that_does_not_exist(live_acme: TenantKit) -> None:
    prefix = made(make_tenant())["key"]["prefix"]
    admin = live_acme.client("admin")
    for answer in (
        admin.get(f"/v1/memory/keys/{prefix}"),
        admin.post(f"/v1/memory/keys/{prefix}/rotate"),
        admin.post(f"/v1/memory/keys/{prefix}/revoke"),
    ):
        refusal(answer, 404, "key-not-found")
    assert person(live_acme, "admin").get(f"admin/keys/{prefix}/").status_code == 404


def fields(once: str = "o" * 32, **changed: Any) -> dict[str, Any]:
    return {
        "name": "booker",
        "role": "agent",
        "abilities": ["read", "append"],
        "projects": "trips\n\n  hotels ",
        "expires_days": "30",
        "once": once,
        **changed,
    }


def test_the_page_shows_the_token_once_and_a_second_send_of_the_form_makes_no_second_key(
    acme: TenantKit,
) -> None:
    admin = person(acme, "admin")
    shown = admin.post("admin/keys/new", fields())
    assert shown.status_code == 200
    assert shown["Cache-Control"] == "no-store"
    [token] = set(TOKEN.findall(shown.content.decode()))
    me = ApiClient(token).get("/v1/memory/me").json()
    assert me["grants"]["projects"] == ["hotels", "trips"]
    again = admin.post("admin/keys/new", fields())
    assert again.status_code == 302
    page = admin.get(again["Location"]).content.decode()
    assert token not in page
    assert "shown then" in page
    with tenant_context(acme.id):
        assert ApiKey.objects.filter(tenant_id=acme.id, name="booker").count() == 1


def key_of(admin: Person) -> tuple[str, str]:
    [token] = set(TOKEN.findall(admin.post("admin/keys/new", fields()).content.decode()))
    return token, token.split("_")[1]


def test_a_key_is_rotated_and_revoked_on_its_pages(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    token, prefix = key_of(admin)
    turned = admin.post(
        f"admin/keys/{prefix}/rotate", {"overlap_hours": "1", "once": "r" * 32}
    ).content.decode()
    [new] = set(TOKEN.findall(turned))
    assert new != token
    assert "In use" in text_of(admin.get(f"admin/keys/{prefix}/"))
    admin.post(f"admin/keys/{prefix}/revoke")
    refusal(ApiClient(token).get("/v1/memory/me"), 401, "auth-revoked")
    assert prefix in admin.get("admin/keys/?status=ended").content.decode()
    assert prefix not in admin.get("admin/keys/").content.decode()
    refused = admin.post(f"admin/keys/{prefix}/rotate", {"overlap_hours": "1"})
    assert "Nothing brings it back" in text_of(refused)


def test_making_rotating_and_revoking_want_a_fresh_proof(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    token, prefix = key_of(admin)
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        for path in (
            "admin/keys/new",
            f"admin/keys/{prefix}/rotate",
            f"admin/keys/{prefix}/revoke",
        ):
            answer = admin.post(path, fields("p" * 32, overlap_hours="1"))
            assert "Is it you?" in text_of(answer), path
    assert ApiClient(token).get("/v1/memory/me").status_code == 200


def test_a_form_that_does_not_fit_keeps_what_was_typed_and_makes_nothing(acme: TenantKit) -> None:
    admin = person(acme, "admin")
    answer = admin.post("admin/keys/new", fields(name="two words"))
    assert answer.status_code == 422
    assert 'value="two words"' in answer.content.decode()
    answer = admin.post("admin/keys/new", fields(role="auditor"))
    assert "only reads" in text_of(answer)
    assert admin.post("admin/keys/new", fields(role="admin")).status_code == 422
    with tenant_context(acme.id):
        assert not ApiKey.objects.filter(tenant_id=acme.id, name="booker").exists()


def test_an_owner_makes_an_admins_key(acme: TenantKit) -> None:
    shown = person(acme, "owner").post("admin/keys/new", fields(role="admin"))
    [token] = set(TOKEN.findall(shown.content.decode()))
    assert ApiClient(token).get("/v1/memory/me").json()["role"] == "admin"
