"""Who the caller is, and what an unusable key answers."""

import pytest
from django.db import connection

from tests.builders import ApiClient, TenantKit


def test_the_tests_run_as_the_unprivileged_app_role(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == ("kindmem_app", False, False)


def test_a_key_learns_its_tenant_role_grants_and_abilities(acme: TenantKit) -> None:
    answer = acme.client("agent", projects=["p1"]).get("/v1/memory/me")
    assert answer.status_code == 200
    body = answer.json()
    assert body["tenant"]["id"] == "acme"
    assert body["role"] == "agent"
    assert body["grants"]["projects"] == ["p1"]
    assert body["abilities"] == ["append", "emit", "read", "write"]


@pytest.mark.parametrize("token", [None, "", "nonsense", "kmk_aaaaaaaaaa_" + "x" * 43])
def test_no_usable_key_answers_401(acme: TenantKit, token: str | None) -> None:
    answer = ApiClient(token).get("/v1/memory/me")
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "auth-missing"
