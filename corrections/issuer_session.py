"""How the issuer of single sign-on is spoken to: at the addresses that it named, over https, and nowhere else.

What it says of itself must bear the name that the operator gave it (OpenID Connect Discovery 4.3): with the document of
another, another's tokens would be taken for its own.

An operator names the issuer, and it may well be inside the house, so unlike what tenants name (`memory.fetcher`) it may have any
address. Proxies and passwords of the environment are not used, and no answer is followed to another address.
"""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from requests import PreparedRequest, Response, Session
from requests.exceptions import InvalidURL

from memory.fetch_rules import is_loopback

TIMEOUT_SECONDS = 5.0
_ITS_DOCUMENT = "/.well-known/openid-configuration"


class IssuerSession(Session):
    """Raises requests' own errors, which sign-in turns into its page."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = 0

    def send(self, request: PreparedRequest, **options: Any) -> Response:
        parts = urlsplit(request.url or "")
        host = parts.hostname or ""
        is_at_home = is_loopback(host) or host == "localhost"
        may_be_plain = settings.KINDMEM_DEVELOPMENT or not settings.SESSION_COOKIE_SECURE
        if parts.scheme != "https" and not (is_at_home and may_be_plain):
            raise InvalidURL("The issuer is spoken to over https.", request=request)
        options["timeout"] = options.get("timeout") or TIMEOUT_SECONDS
        options["allow_redirects"] = False
        answer = super().send(request, **options)
        if answer.is_redirect:
            raise InvalidURL("The issuer leads to another address.", request=request)
        if parts.path.endswith(_ITS_DOCUMENT) and not _is_its_own(answer, request.url or ""):
            raise InvalidURL("The issuer's document is of another issuer.", request=request)
        return answer


def _is_its_own(answer: Response, url: str) -> bool:
    said = answer.json().get("issuer") if answer.ok else None
    return isinstance(said, str) and said.rstrip("/") == url.removesuffix(_ITS_DOCUMENT).rstrip("/")
