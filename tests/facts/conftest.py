"""The two writers that most tests of facts speak as, both holding project p1."""

import pytest

from tests.builders import ApiClient, TenantKit


@pytest.fixture
def app(acme: TenantKit) -> ApiClient:
    return acme.client("app", projects=["p1"])


@pytest.fixture
def agent(acme: TenantKit) -> ApiClient:
    return acme.client("agent", projects=["p1"])


@pytest.fixture
def admin(acme: TenantKit) -> ApiClient:
    return acme.client("admin", may=["read", "write", "append", "emit", "tenant-wide"])
