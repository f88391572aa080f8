"""Who calls: an API key as a Bearer token, or a browser session that names its tenant and carries a CSRF token.

For a key, one statement looks it up, sets the tenant of the transaction and, with an Idempotency-Key, tries the lock that tells
a running twin. The digest is compared before anything else of the row is used; every failure with a key that isn't valid answers
alike.
"""

import hmac
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import reverse

from memory import keys
from memory.access import DEFAULT_ABILITIES, READS_ALL, Containers, Principal, Quota
from memory.errors import (
    AuthExpired,
    AuthMissing,
    AuthRevoked,
    CsrfFailed,
    IdempotencyInFlight,
    ProofWanted,
    TenantClosed,
)
from memory.tenancy import SETTING, set_tenant_on_nodes

TENANT_HEADER = "HTTP_KINDMEM_TENANT"
_PROOFS = "account_authentication_methods"
"""Where sign-in keeps in the session how and when its person proved who they are."""

_LOOK_UP = f"""
SELECT k.tenant_id, k.slug, k.time_zone, k.search_language, k.hash_version, k.tenant_closed_at IS NOT NULL,
       k.key_id, k.digest, k.pepper_version, k.name, k.role, k.all_containers, k.projects, k.orgs, k.users,
       k.participants, k.threads, k.on_behalf_of, k.abilities, k.is_expired, k.is_revoked, k.use_is_stale,
       k.quota_writes, k.quota_bytes, k.quota_subjects, k.quota_window_seconds, k.log_ids,
       set_config('{SETTING}', k.tenant_id::text, true),
       %(lock)s::text IS NULL
         OR pg_try_advisory_xact_lock(hashtextextended(k.tenant_id::text || k.key_id::text || %(lock)s::text, 0))
FROM auth_lookup(%(prefix)s::text) k
"""

# In a statement of its own: the planner asks current_tenant_id() of the tables behind the wall before anything runs.
_SET_TENANT_OF = f"""
SELECT t.id, set_config('{SETTING}', t.id::text, true) FROM (SELECT tenant_id_of(%(slug)s::text) AS id) t WHERE t.id IS NOT NULL
"""

_LOOK_UP_MEMBER = """
SELECT t.id, t.slug, t.time_zone, t.search_language, t.hash_version, t.log_ids, m.id, m.role, m.subject_id
FROM tenant t JOIN member m ON m.tenant_id = t.id
WHERE t.id = %(tenant)s::uuid AND t.closed_at IS NULL AND m.user_id = %(user)s::int AND m.left_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class _Row:
    tenant_id: UUID
    slug: str
    time_zone: str
    search_language: str
    hash_version: int
    is_closed: bool
    key_id: UUID
    digest: bytes
    pepper_version: int
    name: str
    role: Any
    all_containers: bool
    projects: list[str]
    orgs: list[str]
    users: list[str]
    participants: list[str]
    threads: list[str]
    on_behalf_of: list[str]
    abilities: list[str]
    is_expired: bool
    is_revoked: bool
    use_is_stale: bool
    quota_writes: int | None
    quota_bytes: int | None
    quota_subjects: int | None
    quota_window_seconds: int
    log_ids: Any
    tenant_set: str
    has_lock: bool


def check_is_named(request: HttpRequest) -> None:
    """Raises AuthMissing for a request that names no caller at all: its body is not worth waiting for."""
    token = _token_of(request)
    if token is None and settings.SESSION_COOKIE_NAME not in request.COOKIES:
        raise AuthMissing
    if token is not None and keys.prefix_of(token) is None:
        raise AuthMissing


def _token_of(request: HttpRequest) -> str | None:
    """The bearer token; None for a request without the header. Raises AuthMissing for another scheme."""
    header = request.META.get("HTTP_AUTHORIZATION")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise AuthMissing
    return token.strip()


def authenticate(request: HttpRequest, *, idempotency_key: str | None = None) -> Principal:
    """The caller; the tenant of the running transaction is set.

    Raises AuthMissing, AuthExpired, AuthRevoked, CsrfFailed, IdempotencyInFlight.
    """
    token = _token_of(request)
    if token is not None:
        return principal_of_token(token, idempotency_key=idempotency_key)
    return _member(request)


def principal_of_token(token: str, *, idempotency_key: str | None = None) -> Principal:
    """The caller that holds this token. Raises as `authenticate`."""
    prefix = keys.prefix_of(token)
    if prefix is None:
        raise AuthMissing
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, {"prefix": prefix, "lock": idempotency_key})
        found = cursor.fetchone()
    if found is None:
        keys.digest(token, keys.current_pepper_version())  # as much work as for a known prefix
        raise AuthMissing
    row = _Row(*found)
    if not hmac.compare_digest(keys.digest(token, row.pepper_version), bytes(row.digest)):
        raise AuthMissing
    if row.is_revoked:
        raise AuthRevoked
    if row.is_expired:
        raise AuthExpired
    if row.is_closed:
        raise TenantClosed
    if not row.has_lock:
        raise IdempotencyInFlight
    set_tenant_on_nodes(row.tenant_id)
    if row.use_is_stale:
        _note_use(row)
    quota = Quota(row.quota_writes, row.quota_bytes, row.quota_subjects, row.quota_window_seconds)
    return Principal(
        tenant_id=row.tenant_id,
        tenant_slug=row.slug,
        kind="key",
        role=row.role,
        id=prefix,
        name=row.name,
        abilities=frozenset(row.abilities),
        containers=Containers(
            everything=row.all_containers or row.role in READS_ALL,
            projects=frozenset(row.projects),
            orgs=frozenset(row.orgs),
            users=frozenset(row.users),
            participants=frozenset(row.participants),
            threads=frozenset(row.threads),
            on_behalf_of=frozenset(row.on_behalf_of),
        ),
        time_zone=row.time_zone,
        search_language=row.search_language,
        hash_version=row.hash_version,
        log_ids=row.log_ids,
        quota=quota if quota.bounds_something else None,
    )


def _note_use(row: _Row) -> None:
    """Last use is kept to five minutes; SKIP LOCKED, so that many requests at once never wait for it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE api_key SET last_used_at = now() WHERE (tenant_id, id) IN ("
            "SELECT tenant_id, id FROM api_key WHERE tenant_id = %s::uuid AND id = %s::uuid FOR UPDATE SKIP LOCKED)",
            [row.tenant_id, row.key_id],
        )


def _member(request: HttpRequest) -> Principal:
    slug = request.META.get(TENANT_HEADER)
    user = getattr(request, "user", None)
    if not slug or user is None or not user.is_authenticated:
        raise AuthMissing
    _check_csrf(request)
    return principal_of_member(user.pk, slug)


def proved_at(request: HttpRequest) -> float | None:
    """When the browser session last proved who it is, in seconds since 1970; None when it never did."""
    proofs = request.session.get(_PROOFS, [])
    times = [one["at"] for one in proofs if isinstance(one.get("at"), int | float)]
    return max(times, default=None)


def check_is_proved(request: HttpRequest, principal: Principal) -> None:
    """For what matters: a signed-in person proved it lately, by the rule of the pages. A key is its own proof.

    Raises ProofWanted.
    """
    if principal.kind != "member":
        return
    within = settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    at = proved_at(request)
    if at is None or time.time() - at >= within:
        raise ProofWanted(prove_at=reverse("prove"), within_seconds=within)


def enter_tenant(slug: str) -> UUID:
    """Set the tenant of the running transaction by its slug. Raises AuthMissing when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_SET_TENANT_OF, {"slug": slug})
        found = cursor.fetchone()
    if found is None:
        raise AuthMissing
    set_tenant_on_nodes(found[0])
    return UUID(str(found[0]))


def principal_of_member(user_id: int, slug: str) -> Principal:
    """The signed-in user as a member of the tenant; sets the tenant. Raises AuthMissing when there is none."""
    wanted = enter_tenant(slug)
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP_MEMBER, {"tenant": wanted, "user": user_id})
        found = cursor.fetchone()
    if found is None:
        raise AuthMissing
    tenant_id, tenant_slug, time_zone, language, hash_version, log_ids, member_id, role, subject = (
        found
    )
    about = frozenset({subject}) if subject else frozenset()
    return Principal(
        tenant_id=tenant_id,
        tenant_slug=tenant_slug,
        kind="member",
        role=role,
        id=str(user_id),
        name=f"member.{member_id}",
        abilities=DEFAULT_ABILITIES[role],
        containers=Containers(everything=role in READS_ALL, users=about, participants=about),
        subject=subject,
        time_zone=time_zone,
        search_language=language,
        hash_version=hash_version,
        log_ids=log_ids,
    )


class _Csrf(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _nothing(request: HttpRequest) -> HttpResponse:
    """Stands for the view: only the check before it is wanted."""
    return HttpResponse()


def _check_csrf(request: HttpRequest) -> None:
    checker = _Csrf(_nothing)
    checker.process_request(request)
    if checker.process_view(request, _nothing, (), {}) is not None:
        raise CsrfFailed
