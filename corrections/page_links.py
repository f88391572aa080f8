"""A link that an app's key makes for one person: 15 minutes of that person's own pages, without an account.

The token is in the link only; a keyed digest of it is kept. Opening it starts a session of its own that ends when the link does.
"""

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from memory.access import DEFAULT_ABILITIES, Containers, Principal
from memory.actions.append_log_entries import append_governance
from memory.api.authentication import enter_tenant
from memory.erasure.progress import check_none_erases
from memory.errors import AuthMissing, NotFound
from memory.ids import new_id

LIFETIME = timedelta(minutes=15)
SESSION_KEY = "page_link"

# Links that are over are of no use to anybody, and name a person.
_MAKE = """
WITH over AS (
  DELETE FROM page_link WHERE tenant_id = %(tenant)s::uuid AND expires_at <= %(now)s::timestamptz
)
INSERT INTO page_link (tenant_id, id, digest, subject_id, made_by, made_at, expires_at)
VALUES (%(tenant)s::uuid, %(id)s::uuid, %(digest)s::bytea, %(subject)s::text, %(by)s::text, %(now)s::timestamptz,
        %(ends)s::timestamptz)
"""
_OPEN = """
UPDATE page_link SET opened_at = coalesce(opened_at, now())
WHERE tenant_id = %(tenant)s::uuid AND digest = %(digest)s::bytea AND expires_at > now()
RETURNING id::text, subject_id, expires_at
"""
_FIND = """
SELECT t.id, t.slug, t.name, t.time_zone, t.search_language, t.hash_version, t.log_ids, l.subject_id
FROM tenant t JOIN page_link l ON l.tenant_id = t.id
WHERE t.id = %(tenant)s::uuid AND t.closed_at IS NULL AND l.id = %(id)s::uuid AND l.expires_at > now()
"""


@dataclass(frozen=True, slots=True)
class PageLink:
    """`path` starts at the root of the site; it holds the token."""

    path: str
    expires_at: datetime


def _digest(token: str) -> bytes:
    return hmac.new(settings.SECRET_KEY.encode(), b"page link:" + token.encode(), sha256).digest()


def make_page_link(*, principal: Principal, subject: str) -> PageLink:
    """A link for the person; logged.

    Raises PermissionDenied unless an app's key asks, NotFound unless it was granted the person, ErasureInProgress.
    """
    principal.needs_role("app")
    if not principal.containers.everything and subject not in principal.containers.users:
        raise NotFound
    check_none_erases(principal.tenant_id, [subject])
    token, now = secrets.token_urlsafe(32), timezone.now()
    link_id = new_id()
    with connection.cursor() as cursor:
        cursor.execute(
            _MAKE,
            {
                "tenant": principal.tenant_id,
                "id": link_id,
                "digest": _digest(token),
                "subject": subject,
                "by": principal.writer,
                "now": now,
                "ends": now + LIFETIME,
            },
        )
    append_governance(
        principal=principal, payload={"type": "page-link.made", "pageLinkId": str(link_id)}
    )
    path = reverse("page-link", args=[principal.tenant_slug, token])
    return PageLink(path=path, expires_at=now + LIFETIME)


def open_page_link(request: HttpRequest, tenant_id: Any, slug: str, token: str) -> None:
    """Start the link's session; whoever was signed in is signed out. Raises NotFound for a link that is over or never was."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, {"tenant": tenant_id, "digest": _digest(token)})
        found = cursor.fetchone()
    if found is None:
        raise NotFound
    link_id, _, expires_at = found
    request.session.flush()
    request.session[SESSION_KEY] = {"tenant": slug, "id": link_id}
    request.session.set_expiry(expires_at)


def principal_of_link(request: HttpRequest, slug: str) -> tuple[Principal, str]:
    """The person whose link the session holds, and the tenant's name; sets the tenant.

    Raises AuthMissing without a link of this tenant that still holds.
    """
    held = request.session.get(SESSION_KEY)
    if not held or held.get("tenant") != slug:
        raise AuthMissing
    tenant = enter_tenant(slug)
    with connection.cursor() as cursor:
        cursor.execute(_FIND, {"tenant": tenant, "id": held["id"]})
        found = cursor.fetchone()
    if found is None:
        raise AuthMissing
    tenant_id, tenant_slug, name, time_zone, language, hash_version, log_ids, subject = found
    about = frozenset({subject})
    principal = Principal(
        tenant_id=tenant_id,
        tenant_slug=tenant_slug,
        kind="link",
        role="person",
        id=subject,
        name=subject,
        abilities=DEFAULT_ABILITIES["person"],
        containers=Containers(users=about, participants=about),
        subject=subject,
        time_zone=time_zone,
        search_language=language,
        hash_version=hash_version,
        log_ids=log_ids,
    )
    return principal, name
