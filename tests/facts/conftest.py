"""The two writers that most tests of facts speak as, both holding project p1."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import get_resolver

from tests.builders import ApiClient, TenantKit, make_tenant
from tests.facts.sources import Source, set_settings, source_server


@pytest.fixture(scope="session", autouse=True)
def routes() -> None:
    """Loaded before a test opens its transaction: on a busy machine that takes longer than one may be idle."""
    assert get_resolver().url_patterns


@pytest.fixture
def app(acme: TenantKit) -> ApiClient:
    return acme.client("app", projects=["p1"])


@pytest.fixture
def agent(acme: TenantKit) -> ApiClient:
    return acme.client("agent", projects=["p1"])


@pytest.fixture
def admin(acme: TenantKit) -> ApiClient:
    return acme.client("admin", may=["read", "write", "append", "emit", "tenant-wide"])


@pytest.fixture
def globex(db: None) -> TenantKit:
    """Another tenant, beside acme."""
    return make_tenant("globex")


@pytest.fixture
def other(globex: TenantKit) -> ApiClient:
    """An admin of the other tenant."""
    return globex.client("admin")


@pytest.fixture
def crm(live_acme: TenantKit, settings: Any) -> Iterator[Source]:
    """A source that the committed tenant registered."""
    settings.KINDMEM_DEVELOPMENT = True
    set_settings(live_acme, refreshHosts=["127.0.0.1"], refreshHandlers=["crm"])
    with source_server() as source:
        yield source
