"""Single sign-on by OpenID Connect as settings: what sign-in is told of the issuer, and where its form may lead."""

from typing import Any
from urllib.parse import urlsplit

PROVIDER = "openid_connect"
PROVIDER_ID = "oidc"


def providers(issuer: str, *, name: str, client_id: str, secret: str) -> dict[str, Any]:
    """For `SOCIALACCOUNT_PROVIDERS`; without an issuer there is no button."""
    app = {
        "provider_id": PROVIDER_ID,
        "name": name,
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": issuer.rstrip("/")},
    }
    return {PROVIDER: {"OAUTH_PKCE_ENABLED": True, "APPS": [app] if issuer else []}}


def origins(issuer: str) -> list[str]:
    """Where the sign-in form's answer may lead, for the content security policy."""
    parts = urlsplit(issuer)
    return [f"{parts.scheme}://{parts.netloc}"] if issuer else []
