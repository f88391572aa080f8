"""Two tenants with the same things under the same names, everybody who may call, and what tells answers apart.

Everything of the other tenant holds a token, the canary. Answers are compared byte by byte after the one thing that may differ,
the request's own id; where a call makes something, what the server makes anew each time is levelled as well.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import psycopg
from allauth.account.internal.flows.login import record_authentication
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import Client

from memory.access import system_principal
from memory.actions.create_member import create_member
from tests.api.makers import PROJECT, USER, Place
from tests.api.rows import KEYS
from tests.builders import ApiClient, TenantKit, make_tenant
from tests.db.test_catalog import tenant_tables

MEMBERS = ("owner", "admin", "auditor", "person")
ROLES = (*KEYS, *(f"member:{role}" for role in MEMBERS))
SEES_ALL = frozenset({"admin", "auditor", "member:owner", "member:admin", "member:auditor"})
EVERY_ABILITY = ("read", "write", "append", "emit", "tenant-wide")


@dataclass
class MemberClient(ApiClient):
    """A signed-in member who names a tenant."""

    slug: str = ""

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> HttpResponse:
        return super().request(method, path, body, **{"Kindmem-Tenant": self.slug, **more})


def member_client(kit: TenantKit, role: str) -> MemberClient:
    made = create_member(
        principal=system_principal(kit.id, kit.slug, id="tests"),
        email=f"{role}-{secrets.token_hex(4)}@{kit.slug}.example",
        role=role,
        subject=USER if role == "person" else None,
    )
    browser = Client()
    user = get_user_model().objects.get(pk=made.user_id)
    browser.force_login(user)
    session = browser.session
    record_authentication(SimpleNamespace(session=session), user, method="password")
    session.save()
    return MemberClient(client=browser, slug=kit.slug)


@dataclass
class World:
    """`mine`: the tenant that calls. `theirs`: the other one. `taken`: ids of theirs that something of mine has too."""

    mine: Place
    theirs: Place
    callers: dict[str, ApiClient]
    their_id: UUID
    their_slug: str
    superuser_url: str
    taken: set[str] = field(default_factory=set)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Whatever happens meanwhile, no row of the other tenant has changed afterwards."""
        before = self.checksum()
        yield
        assert self.checksum() == before

    def checksum(self) -> str:
        """One digest of every row of the other tenant, read past all walls."""
        return str(checksums(self.superuser_url, self.their_id))


def checksums(superuser_url: str, tenant_id: UUID) -> dict[str, str | None]:
    """Table → a digest of every row of the tenant, read past all walls."""
    sums: dict[str, str | None] = {}
    with psycopg.connect(superuser_url) as connection:
        for table in sorted(tenant_tables() | {"tenant"}):
            column = "id" if table == "tenant" else "tenant_id"
            row = connection.execute(
                f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t WHERE {column} = %s",
                [tenant_id],
            ).fetchone()
            sums[table] = row[0] if row else None
    return sums


def make_world(superuser_url: str) -> World:
    mine, theirs = make_tenant(), make_tenant()
    callers: dict[str, ApiClient] = {
        role: mine.client(role, projects=[PROJECT], users=[USER])
        if role in ("agent", "app")
        else mine.client(role)
        for role in KEYS
    }
    callers |= {f"member:{role}": member_client(mine, role) for role in MEMBERS}
    return World(
        mine=Place(_builder(mine)),
        theirs=Place(_builder(theirs), canary=f"canary-{secrets.token_hex(8)}"),
        callers=callers,
        their_id=theirs.id,
        their_slug=theirs.slug,
        superuser_url=superuser_url,
    )


def _builder(kit: TenantKit) -> ApiClient:
    return kit.client("admin", may=EVERY_ABILITY)


def like(known: str) -> str:
    """An id that nobody has, of the same form and length."""
    try:
        UUID(known)
    except ValueError:
        return "".join(
            secrets.choice("0123456789abcdef") if sign in "0123456789abcdef" else sign
            for sign in known
        )
    return str(uuid4())


_MADE_ANEW = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:sha256:)?[0-9a-f]{64}"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|R-[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}"
    rb"|[a-z]+-[0-9a-f]{12}|travel\.seat_[0-9a-f]{8}"
)
"""What the server or the test makes anew for each call."""
_REQUEST_ID = re.compile(rb'"requestId":"[^"]+"')
_REFUSED_ALIKE = (400, 401, 403, 404, 405)


def seen(answer: HttpResponse, *ids: str) -> tuple[int, bytes, list[tuple[str, str]]]:
    """What the caller can tell one answer from another by: status, body, headers."""
    body = _REQUEST_ID.sub(b'"requestId":""', answer.content)
    if answer.status_code not in _REFUSED_ALIKE:
        for known in ids:
            body = body.replace(known.encode(), b"@id@")
        body = _MADE_ANEW.sub(b"@new@", body)
    headers = [
        (name, value)
        for name, value in sorted(answer.items())
        if name not in ("X-Request-Id", "Content-Length")
    ]
    return answer.status_code, body, headers


def assert_tells_nothing(answer: HttpResponse, world: World) -> None:
    """Neither the canary nor an id of theirs, but for those that the calling tenant took for something of its own."""
    text = answer.content + repr(list(answer.items())).encode()
    told = [one for one in (world.theirs.canary, *world.theirs.made) if one.encode() in text]
    assert not set(told) - world.taken
