"""What signing in means here: nobody signs up, every sign-in is told to the person's tenants, second factors are stored sealed.

Accounts are made by admins and operators. Single sign-on finds the account by the address that the issuer vouches for.
An attempt that failed is a line of the log without the address that was tried: people type passwords there.
"""

import base64
import os
from typing import Any, ClassVar
from urllib.parse import urlencode

import structlog
from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.models import EmailAddress
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.adapter import get_adapter as get_social_adapter
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corrections.issuer_session import IssuerSession
from corrections.sign_in_limits import Tries
from memory.actions.append_log_entries import append_governance
from memory.api.authentication import principal_of_member
from memory.tenancy import tenant_context

log = structlog.get_logger("kindmem.pages")
_NONCE_BYTES = 12
_PURPOSE = b"kindmem second factor"
MOST_TENANTS_TOLD = 50


class AccountAdapter(DefaultAccountAdapter):
    """Closed to sign-ups; a sign-in is an entry of governance in each tenant that the person is a member of."""

    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultAccountAdapter.error_messages,
        "too_many_login_attempts": gettext_lazy(
            "Too many failed tries. Try again in five minutes at the latest."
        ),
        "rate_limited": gettext_lazy(
            "Too many failed tries. Try again in five minutes at the latest."
        ),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        self._tries = Tries()
        login = credentials.get("email") or credentials.get("username") or ""
        self._tries.count(request, login.lower())

    def _rollback_login_failed_rl_usage(self) -> None:
        self._tries.take_back()

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        log.warning("sign_in_failed", by="password")

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        log_sign_in(user.pk)
        return response


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """An issuer opens the accounts that are there, and makes none."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def get_requests_session(self) -> Any:
        return IssuerSession()

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """An account found by the address that the issuer vouches for keeps its password and its sessions: nobody signs up
        here, so no stranger can have taken the address beforehand, which is what these would else be ended for."""
        if sociallogin.is_existing and sociallogin.account.pk is None:
            EmailAddress.objects.update_or_create(
                user=sociallogin.user,
                email=sociallogin.user.email.lower(),
                defaults={"verified": True, "primary": True},
            )


def way_to_prove(request: HttpRequest, then: str) -> str:
    """Where the signed-in person proves anew who they are: by password or second factor, else by signing in again with the
    issuer; `then` is where that leads."""
    methods = get_adapter(request).get_reauthentication_methods(request.user)
    if methods:
        return f"{methods[0]['url']}?{urlencode({REDIRECT_FIELD_NAME: then})}"
    for provider in get_social_adapter(request).list_providers(request):
        return str(provider.get_login_url(request, process="login", next=then))
    return reverse("account_logout")


class SecondFactorAdapter(DefaultMFAAdapter):
    """Secrets of second factors are worthless to whoever has only the database."""

    def generate_authenticator_name(self, user: Any, type: Any) -> str:
        """What a new passkey is called until its person says."""
        return _("My passkey")

    def encrypt(self, text: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(settings.KINDMEM_STATE.sealing_key).encrypt(nonce, text.encode(), _PURPOSE)
        return base64.b64encode(nonce + sealed).decode()

    def decrypt(self, encrypted_text: str) -> str:
        raw = base64.b64decode(encrypted_text)
        key = AESGCM(settings.KINDMEM_STATE.sealing_key)
        return key.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _PURPOSE).decode()


def log_sign_in(user_id: int) -> None:
    """Tell each tenant of the user, in a transaction of its own each."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, slug FROM memberships_of(%s::int) LIMIT %s::int",
            [user_id, MOST_TENANTS_TOLD],
        )
        tenants = cursor.fetchall()
    for tenant_id, slug in tenants:
        with tenant_context(tenant_id):
            append_governance(
                principal=principal_of_member(user_id, slug), payload={"type": "member.signed-in"}
            )
