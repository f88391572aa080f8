"""The API keeps what its description says: for requests made from it, good and bad ones, of every operation and three roles.

No 500, no status that isn't described, and every answer has its described type and shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kindmem.wsgi import application
from tests.api.endpoints import Endpoint, endpoints
from tests.api.isolation import EVERY_ABILITY
from tests.api.makers import PROJECT, USER, Place
from tests.api.rows import ROWS
from tests.builders import ApiClient, make_tenant

ALL = [endpoint for endpoint in endpoints() if endpoint.id in ROWS]
FEW, MANY = 2, 20
"""Requests an operation, role and kind, good or bad."""

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


_FAR_REACHING = {
    "memory.createErasure",
    "memory.placeHold",
    "memory.replayErasures",
    "memory.setRetention",
}
"""What they do may reach everything of a tenant, such as a hold on it all: each gets one of its own."""


@dataclass(frozen=True)
class Tenant:
    place: Place
    callers: Mapping[str, ApiClient]


def _make_tenant() -> Tenant:
    kit = make_tenant()
    callers = {
        "admin": kit.client("admin"),
        "agent": kit.client("agent", projects=[PROJECT], users=[USER]),
        "app": kit.client("app", projects=[PROJECT], users=[USER]),
    }
    return Tenant(Place(kit.client("admin", may=EVERY_ABILITY)), callers)


@pytest.fixture(scope="module")
def shared(django_db_setup: None, django_db_blocker: Any) -> Tenant:
    with django_db_blocker.unblock():
        return _make_tenant()


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The operations of the description, by their ids."""
    schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", application)
    found = [result.ok() for result in schema.get_all_operations()]
    return {operation.definition.raw["operationId"]: operation for operation in found}


def _try(endpoint: Endpoint, operation: Any, shared: Tenant, examples: int) -> None:
    tenant = _make_tenant() if endpoint.id in _FAR_REACHING else shared
    row = ROWS[endpoint.id]
    for role, client in tenant.callers.items():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            ids = {**row.fixed, **row.ids_in(tenant.place)}
            try:
                _send(operation.as_strategy(generation_mode=mode), ids, client, examples)
            except BaseException as error:
                error.add_note(f"as {role}, {mode}")
                raise


def _send(cases: Any, ids: Mapping[str, str], client: ApiClient, examples: int) -> None:
    """Requests of one caller; half of them ask for what is there."""

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, is_there=st.booleans())
    def send(case: Any, is_there: bool) -> None:
        checks = _CHECKS
        if is_there:
            # What was wrong may have been the id.
            case.path_parameters.update(ids)
        elif not _has_unsent_parameters(case):
            checks = [*_CHECKS, negative_data_rejection]
        headers = {"Authorization": f"Bearer {client.token}"}
        case.call_and_validate(headers=headers, checks=checks)

    send()


def _has_unsent_parameters(case: Any) -> bool:
    """Whether the case names a parameter that no address can hold, such as one with an empty list: nobody sees it."""
    return any(value in ([], {}, None) for value in (case.query or {}).values())


def test_the_description_has_every_operation(described: dict[str, Any]) -> None:
    assert set(described) == {endpoint.id for endpoint in endpoints()}


@pytest.mark.parametrize("endpoint", ALL, ids=lambda endpoint: endpoint.id)
def test_an_operation_keeps_its_description(
    endpoint: Endpoint, described: dict[str, Any], shared: Tenant, live_db: None
) -> None:
    _try(endpoint, described[endpoint.id], shared, FEW)


@pytest.mark.full
@pytest.mark.parametrize("endpoint", ALL, ids=lambda endpoint: endpoint.id)
def test_an_operation_keeps_its_description_in_many_requests(
    endpoint: Endpoint, described: dict[str, Any], shared: Tenant, live_db: None
) -> None:
    _try(endpoint, described[endpoint.id], shared, MANY)
