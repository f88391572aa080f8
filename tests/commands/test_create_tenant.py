"""`create_tenant` makes a tenant once, and says plainly what it doesn't take."""

import secrets

import pytest
from django.core.management.base import CommandError

from memory.models import Tenant
from memory.tenancy import tenant_context, tenant_id_of
from tests.commands.commands import answered, told


def a_slug() -> str:
    return f"t-{secrets.token_hex(5)}"


def test_it_makes_a_tenant_with_its_time_zone_and_search_language(db: None) -> None:
    slug = a_slug()
    made = answered(
        "create_tenant",
        slug,
        "--name",
        "Ärzte & Co",
        "--time-zone",
        "Europe/Berlin",
        "--search-language",
        "german",
    )
    assert made == {"id": str(tenant_id_of(slug)), "slug": slug, "name": "Ärzte & Co"}
    with tenant_context(tenant_id_of(slug)):
        tenant = Tenant.objects.get(slug=slug)
    assert (tenant.name, tenant.time_zone, tenant.search_language) == (
        "Ärzte & Co",
        "Europe/Berlin",
        "german",
    )


def test_without_a_name_people_read_the_slug(db: None) -> None:
    slug = a_slug()
    assert slug in told("create_tenant", slug)
    with tenant_context(tenant_id_of(slug)):
        assert Tenant.objects.get(slug=slug).name == slug


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Ünder_score"], "slug must be"),
        (["-dash"], "slug"),
        (["x" * 64], "slug must be"),
        (["fine", "--time-zone", "Mars/Olympus"], "time-zone must be an IANA time zone"),
        (["fine", "--name", "n" * 201], "name must have 1 to 200 characters"),
        (["fine", "--name", ""], "name must have 1 to 200 characters"),
        (["fine", "--search-language", "klingon"], "invalid choice"),
    ],
)
def test_what_it_does_not_take_it_names(db: None, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        told("create_tenant", *arguments)


def test_a_slug_is_taken_once(db: None) -> None:
    slug = a_slug()
    told("create_tenant", slug)
    with pytest.raises(CommandError, match="slug is taken"):
        told("create_tenant", slug)


@pytest.mark.parametrize(
    "command",
    [
        ["create_member", "nowhere", "a@b.example", "--role", "admin"],
        ["create_api_key", "nowhere", "--name", "k", "--role", "agent"],
        ["revoke_api_key", "nowhere", "abcdefghij"],
        ["rotate_keys", "nowhere", "abcdefghij"],
    ],
)
def test_an_unknown_tenant_is_named_with_the_command_that_makes_it(
    db: None, command: list[str]
) -> None:
    with pytest.raises(CommandError, match="create_tenant nowhere") as refused:
        told(*command)
    assert refused.value.returncode == 1
