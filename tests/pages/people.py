"""People with accounts, and browsers of theirs, in process."""

import re
import secrets
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from allauth.account.internal.flows.login import record_authentication
from django.contrib.auth import get_user_model
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from kindmem.session_limits import SIGNED_IN_AT, USED_AT
from memory.access import Principal, system_principal
from memory.actions.create_member import create_member
from memory.api.authentication import principal_of_member
from memory.tenancy import tenant_context
from tests.builders import TenantKit

PASSWORD = "a long enough password"


@dataclass
class Person:
    """A member of one tenant and their browser. Paths are below `/t/<tenant>/` unless they start with a slash."""

    kit: TenantKit
    role: str
    user_id: int
    email: str
    subject: str | None
    browser: Client = field(default_factory=Client)

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"/t/{self.kit.slug}/{path}"

    def get(self, path: str, query: dict[str, Any] | None = None, **more: Any) -> HttpResponse:
        more.setdefault("headers", {}).setdefault("Accept", "text/html")
        return self.browser.get(self.path(path), query, **more)

    def post(self, path: str, fields: dict[str, Any] | None = None, **more: Any) -> HttpResponse:
        more.setdefault("headers", {}).setdefault("Accept", "text/html")
        return self.browser.post(self.path(path), fields or {}, **more)

    @property
    def principal(self) -> Principal:
        with tenant_context(self.kit.id):
            return principal_of_member(self.user_id, self.kit.slug)


def person(kit: TenantKit, role: str = "auditor", subject: str | None = None) -> Person:
    """A new member who signed in just now, and proved once more who they are."""
    email = f"{role}-{secrets.token_hex(4)}@example.com"
    if role == "person" and subject is None:
        subject = f"user-{secrets.token_hex(3)}"
    appointing = system_principal(kit.id, kit.slug, id="tests")
    member = create_member(
        principal=appointing, email=email, role=role, subject=subject, password=PASSWORD
    )
    made = Person(kit, role, member.user_id, email, subject)
    user = get_user_model().objects.get(pk=member.user_id)
    _sign_in(made.browser, user)
    return made


def sign_in(made: Person) -> None:
    """Anew, such as after hours."""
    _sign_in(made.browser, get_user_model().objects.get(pk=made.user_id))


def _sign_in(browser: Client, user: Any) -> None:
    browser.force_login(user)
    session = browser.session
    record_authentication(
        SimpleNamespace(session=session), user, method="password", reauthenticated=True
    )
    session[SIGNED_IN_AT] = session[USED_AT] = time.time()  # else the first page would write it
    session.save()


def stranger(kit: TenantKit) -> Person:
    """Somebody who is not signed in."""
    return Person(kit, "stranger", -1, "", None)


def an_operator(kit: TenantKit) -> Person:
    """Somebody who runs the installation and belongs to no workspace."""
    email = f"op-{secrets.token_hex(4)}@example.com"
    user = get_user_model().objects.create_superuser(email, email, PASSWORD)
    made = Person(kit, "operator", user.pk, email, None)
    _sign_in(made.browser, user)
    return made


def text_of(response: HttpResponse) -> str:
    """What a reader reads: the body without tags, spaces folded."""
    body = re.sub(r"<(script|style|head)\b.*?</\1>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body.replace("<wbr>", "")))


def settled(made: Person, *, hours: int = 48) -> Person:
    """The same person, with a role that was granted that long ago: the cooling-off time is over."""
    with tenant_context(made.kit.id), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE member SET role_granted_at = now() - %s::int * interval '1 hour' WHERE user_id = %s::int",
            [hours, made.user_id],
        )
    return made
