"""The world of two tenants that the tests of every route share."""

from tests.api.conftest import world

__all__ = ["world"]
