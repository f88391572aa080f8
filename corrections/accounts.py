"""What signing in means here: nobody signs up, every sign-in is told to the person's tenants, second factors are stored sealed.

Accounts are made by admins and operators. Single sign-on finds the account by the address that the issuer vouches for.
"""

import base64
import os
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse

from memory.actions.append_log_entries import append_governance
from memory.api.authentication import principal_of_member
from memory.tenancy import tenant_context

_NONCE_BYTES = 12
_PURPOSE = b"kindmem second factor"
MOST_TENANTS_TOLD = 50


class AccountAdapter(DefaultAccountAdapter):
    """Closed to sign-ups; a sign-in is an entry of governance in each tenant that the person is a member of."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        log_sign_in(user.pk)
        return response


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """An issuer opens the accounts that are there, and makes none."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False


class SecondFactorAdapter(DefaultMFAAdapter):
    """Secrets of second factors are worthless to whoever has only the database."""

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
