"""Make a tenant."""

import re
import zoneinfo
from typing import Any
from uuid import UUID

from memory.errors import BadInput, constraint_errors
from memory.ids import new_id
from memory.integrity.anchors import begin_anchors
from memory.models import Tenant
from memory.search.analysis import LANGUAGES
from memory.tenancy import tenant_context

NAME_MAX = 200
SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def create_tenant(
    *,
    slug: str,
    name: str | None = None,
    time_zone: str = "UTC",
    search_language: str = "english",
    **settings: Any,
) -> UUID:
    """The new tenant's id.

    Raises BadInput: the slug is taken or has another shape, the name is too long, the time zone or search language unknown.
    """
    if not SLUG.fullmatch(slug):
        raise BadInput.at(
            "slug", "must be 1 to 63 of a-z, 0-9 and -, not starting or ending with -"
        )
    if name is not None and not 1 <= len(name) <= NAME_MAX:
        # courtesy; tenant_name_is_named decides
        raise BadInput.at("name", f"must have 1 to {NAME_MAX} characters")
    if search_language not in LANGUAGES:
        raise BadInput.at("search_language", "must be one of: " + ", ".join(LANGUAGES))
    if time_zone not in zoneinfo.available_timezones():
        raise BadInput.at("time_zone", "must be an IANA time zone, such as Europe/Berlin")
    tenant_id = new_id()
    with (
        constraint_errors(tenant_slug_is_unique=BadInput.at("slug", "is taken")),
        tenant_context(tenant_id),
    ):
        Tenant.objects.create(
            id=tenant_id,
            slug=slug,
            name=name or slug,
            time_zone=time_zone,
            search_language=search_language,
            **settings,
        )
    begin_anchors(slug)
    return tenant_id
