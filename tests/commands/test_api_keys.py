"""Keys by command: shown once, with exactly the grants that were named; revoked for good; rotated without a pause."""

import base64
import json
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from kindmem.state import load_or_create
from memory.actions.create_api_key import create_api_key
from memory.actions.revoke_api_key import revoke_api_key
from memory.actions.rotate_key import rotate_key
from memory.errors import PermissionDenied
from memory.models import ApiKey
from memory.tenancy import tenant_context
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.commands.commands import answered, told
from tests.commands.governance import governance


def me(token: str) -> Any:
    return ApiClient(token).get("/v1/memory/me")


def test_the_json_answer_is_token_prefix_and_expiry_and_no_more(acme: TenantKit) -> None:
    made = answered(
        "create_api_key",
        "acme",
        "--name",
        "billing.agent",
        "--role",
        "agent",
        "--expires-days",
        "7",
    )
    assert set(made) == {"token", "prefix", "expiresAt"}
    assert made["token"].split("_")[1] == made["prefix"]
    left = parse_datetime(made["expiresAt"]) - timezone.now()  # type: ignore[operator]
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)


def test_the_token_works_and_has_the_grants_that_were_named(acme: TenantKit) -> None:
    made = answered(
        *(
            "create_api_key",
            "acme",
            "--name",
            "k",
            "--role",
            "app",
            "--projects",
            "a, b",
            "--orgs",
            "o",
        ),
        *(
            "--users",
            "u",
            "--participants",
            "p",
            "--threads",
            "t",
            "--on-behalf-of",
            "c",
            "--may",
            "read,append",
        ),
    )
    body = me(made["token"]).json()
    assert (body["role"], body["abilities"]) == ("app", ["append", "read"])
    grants = body["grants"]
    assert (grants["projects"], grants["orgs"], grants["users"]) == (["a", "b"], ["o"], ["u"])
    assert (grants["participants"], grants["threads"], grants["onBehalfOf"]) == (
        ["p"],
        ["t"],
        ["c"],
    )


def test_without_json_the_token_is_the_first_line(acme: TenantKit) -> None:
    first, *_ = told("create_api_key", "acme", "--name", "k", "--role", "agent").splitlines()
    assert me(first).status_code == 200


def test_the_token_is_kept_nowhere(acme: TenantKit) -> None:
    token = answered("create_api_key", "acme", "--name", "k", "--role", "agent")["token"]
    with tenant_context(acme.id):
        rows = list(ApiKey.objects.values())
    secret = token.split("_", 2)[2]
    assert len(rows) == 1
    assert secret not in str(rows)
    assert secret not in json.dumps(governance(acme))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--name", "has space", "--role", "agent"], "name must be"),
        (["--name", "k", "--role", "owner"], "invalid choice"),
        (
            ["--name", "k", "--role", "agent", "--expires-days", "0"],
            "expires-days must be 1 to 366",
        ),
        (["--name", "k", "--role", "agent", "--may", "read,fly"], "may does not know fly"),
        (["--name", "k", "--role", "agent", "--may", ""], "may names no ability"),
        (["--name", "k", "--role", "agent", "--may", " , "], "may names no ability"),
        (["--name", "k", "--role", "auditor", "--may", "write"], "auditor's key only reads"),
        (["--name", "k", "--role", "agent", "--projects", "p" * 257], "projects ids have 1 to 256"),
    ],
)
def test_what_it_does_not_take_it_names(acme: TenantKit, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        told("create_api_key", "acme", *arguments)
    with tenant_context(acme.id):
        assert not ApiKey.objects.exists()


def test_a_revoked_key_is_refused_at_once_and_stays_revoked(acme: TenantKit) -> None:
    made = answered("create_api_key", "acme", "--name", "k", "--role", "agent")
    first = answered("revoke_api_key", "acme", made["prefix"])
    assert me(made["token"]).json()["error"]["code"] == "auth-revoked"
    assert answered("revoke_api_key", "acme", made["prefix"]) == first
    assert [entry["type"] for entry in governance(acme)] == ["key.created", "key.revoked"]


def test_another_tenants_key_is_no_key(acme: TenantKit) -> None:
    other = make_tenant()
    made = answered("create_api_key", other.slug, "--name", "k", "--role", "agent")
    for command in ("revoke_api_key", "rotate_keys"):
        with pytest.raises(CommandError, match="There is no API key with this prefix"):
            told(command, "acme", made["prefix"])
    assert me(made["token"]).status_code == 200


def test_a_rotated_key_has_a_successor_with_its_grants_and_an_end(acme: TenantKit) -> None:
    old = answered(
        "create_api_key",
        "acme",
        "--name",
        "k",
        "--role",
        "agent",
        "--projects",
        "a",
        "--may",
        "read",
    )
    new = answered("rotate_keys", "acme", old["prefix"], "--overlap-hours", "3")
    assert set(new) == {"token", "prefix", "expiresAt"}
    assert me(old["token"]).status_code == 200
    assert me(new["token"]).json()["grants"] == me(old["token"]).json()["grants"]
    assert me(new["token"]).json()["abilities"] == ["read"]
    with tenant_context(acme.id):
        left = ApiKey.objects.get(prefix=old["prefix"]).expires_at - timezone.now()
    assert timedelta(hours=2, minutes=59) < left <= timedelta(hours=3)
    assert governance(acme)[-1] == {
        "type": "key.rotated",
        "prefix": old["prefix"],
        "newPrefix": new["prefix"],
        "overlapHours": 3,
    }


def test_a_key_rotated_without_overlap_ends_now(live_acme: TenantKit) -> None:
    slug = live_acme.slug
    old = answered("create_api_key", slug, "--name", "k", "--role", "agent")
    told("rotate_keys", slug, old["prefix"], "--overlap-hours", "0")
    assert me(old["token"]).json()["error"]["code"] == "auth-expired"


def test_rotating_never_prolongs_the_old_key(acme: TenantKit) -> None:
    old = answered(
        "create_api_key", "acme", "--name", "k", "--role", "agent", "--expires-days", "1"
    )
    told("rotate_keys", "acme", old["prefix"], "--overlap-hours", "720")
    with tenant_context(acme.id):
        assert ApiKey.objects.get(prefix=old["prefix"]).expires_at == parse_datetime(
            old["expiresAt"]
        )


def test_a_revoked_key_has_no_successor(acme: TenantKit) -> None:
    old = answered("create_api_key", "acme", "--name", "k", "--role", "agent")
    told("revoke_api_key", "acme", old["prefix"])
    with pytest.raises(CommandError, match="revoked-key-stays-revoked"):
        told("rotate_keys", "acme", old["prefix"])


@pytest.mark.parametrize(
    "arguments",
    [[], ["acme"], ["acme", "abcdefghij", "--overlap-hours", "721"], ["acme", "--pepper"]],
)
def test_rotate_keys_needs_a_key_or_the_pepper(acme: TenantKit, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        told("rotate_keys", *arguments)


@pytest.mark.parametrize("role", ["agent", "app", "auditor"])
def test_only_admins_and_owners_touch_keys(acme: TenantKit, role: str) -> None:
    principal = acme.principal(role)
    for act in (
        lambda: create_api_key(principal=principal, name="k", role="agent"),
        lambda: revoke_api_key(principal=principal, prefix=principal.id),
        lambda: rotate_key(principal=principal, prefix=principal.id),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_after_a_new_pepper_old_keys_work_and_new_keys_use_it(
    acme: TenantKit, own_state: Path
) -> None:
    old = answered("create_api_key", "acme", "--name", "old", "--role", "agent")
    version = answered("rotate_keys", "--pepper")["pepperVersion"]
    # This process goes on with the state that it read before: as a web server does.
    new = answered("create_api_key", "acme", "--name", "new", "--role", "agent")
    with tenant_context(acme.id):
        peppers = dict(ApiKey.objects.values_list("name", "pepper_version"))
    assert peppers == {"old": 1, "new": version}
    assert [me(key["token"]).status_code for key in (old, new)] == [200, 200]
    assert {"type": "pepper.rotated", "version": version} in governance(acme)
    assert load_or_create(own_state).current_pepper == version
    assert (own_state / "peppers").stat().st_mode & 0o777 == 0o600


def test_a_key_under_a_lost_pepper_does_not_work(
    acme: TenantKit, own_state: Path, settings: Any
) -> None:
    key = answered("create_api_key", "acme", "--name", "k", "--role", "agent")
    fresh = base64.b64encode(secrets.token_bytes(32)).decode()
    (own_state / "peppers").write_text(json.dumps({"current": 1, "peppers": {"1": fresh}}))
    settings.KINDMEM_STATE = load_or_create(own_state)
    assert me(key["token"]).json()["error"]["code"] == "auth-missing"
