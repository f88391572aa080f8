"""`refresh_sources` says which hosts and handlers a tenant's cached views are refreshed from, and takes only what can work."""

from typing import Any

import pytest
from django.core.management.base import CommandError

from memory.errors import PermissionDenied
from memory.refresh import registry
from memory.refresh.handler import RefreshRequest, Unchanged
from memory.tenancy import tenant_context
from tests.builders import TenantKit
from tests.commands.commands import answered, told
from tests.commands.governance import governance
from tests.facts.shapes import at, written
from tests.facts.sources import freshness_meta, set_settings, source_server, view


def unchanged(request: RefreshRequest, seconds: float) -> Unchanged:
    return Unchanged()


def test_hosts_and_handlers_are_added_and_taken_away_and_shown(acme: TenantKit) -> None:
    with registry.handler_registered("crm", unchanged):
        added = answered(
            "refresh_sources",
            "acme",
            *("--add-host", "CRM.example.com", "--add-host", "api.example.com"),
            *("--add-handler", "crm"),
        )
    shown = {
        "tenant": "acme",
        "hosts": ["api.example.com", "crm.example.com"],
        "handlers": ["crm"],
    }
    assert added == shown
    assert answered("refresh_sources", "acme") == shown
    taken = ("--remove-host", "api.example.com", "--remove-handler", "crm")
    assert answered("refresh_sources", "acme", *taken) == {
        "tenant": "acme",
        "hosts": ["crm.example.com"],
        "handlers": [],
    }
    assert "hosts: crm.example.com" in told("refresh_sources", "acme")
    entries = [one for one in governance(acme) if one["type"] == "refresh-sources.registered"]
    assert [(one["hosts"], one["handlers"]) for one in entries] == [(2, ["crm"]), (1, [])]


def test_other_settings_of_the_tenant_stay(acme: TenantKit) -> None:
    set_settings(acme, retention={"keepDays": 3})
    answered("refresh_sources", "acme", "--add-host", "crm.example.com")
    from memory.actions.set_retention import retention_settings

    with tenant_context(acme.id):
        assert retention_settings(acme.id).keep_days == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--add-host", "https://crm.example.com"], "host must be"),
        (["--add-host", "crm.example.com/path"], "a name alone"),
        (["--add-host", "crm.example.com:443"], "a name alone"),
        (["--add-host", "user@crm.example.com"], "userinfo"),
        (["--add-host", "127.0.0.1"], "must be a public host"),
        (["--add-host", "localhost"], "must be a public host"),
        (["--add-host", ""], "must be a public host"),
        (["--add-handler", "nobody's"], "no installed package offers nobody's"),
        (["--add-handler", "http-api"], "is built in"),
    ],
)
def test_what_can_not_work_is_refused(acme: TenantKit, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        told("refresh_sources", "acme", *arguments)
    assert answered("refresh_sources", "acme")["hosts"] == []


def test_only_an_admin_registers(acme: TenantKit) -> None:
    from memory.actions.register_refresh import register_refresh

    for role in ("app", "agent", "auditor"):
        with pytest.raises(PermissionDenied), tenant_context(acme.id):
            register_refresh(principal=acme.principal(role), add_hosts=["crm.example.com"])


def test_a_registered_host_is_asked_from_then_on(live_acme: TenantKit, settings: Any) -> None:
    settings.KINDMEM_DEVELOPMENT = True
    app = live_acme.client("app", projects=["p1"])
    with source_server() as crm:
        fact = written(app, source=view(uri=crm.url, strategy="on-read"))
        refused = freshness_meta(app.get(at(fact)).json())
        assert refused == {"stale": True, "refreshFailure": "source-not-registered"}
        answered("refresh_sources", live_acme.slug, "--add-host", "127.0.0.1")
        assert app.get(at(fact)).json()["content"] == {"seat": "window"}
