"""A small OpenID Connect provider on a port of its own: it says at once that whoever comes is the person it was told of.

It checks what a provider must: the client's secret, that a code is used once, and the proof key of whoever began.
"""

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt

CLIENT_ID, CLIENT_SECRET = "kindmem", "a secret of the client's"


@dataclass
class Issuer:
    """`person`: the claims about whoever signs in next. `refusals`: what it did not accept."""

    url: str
    person: dict[str, Any]
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes back to."""
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"]}
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def token(self, given: dict[str, str]) -> dict[str, Any] | None:
        asked = self.codes.pop(given.get("code", ""), None)
        if asked is None:
            return self._refuse("code")
        digest = sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked.get("code_challenge") != challenge:
            return self._refuse("proof key")
        if (given.get("client_id"), given.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return self._refuse("client")
        now, token = int(time.time()), secrets.token_urlsafe(16)
        self.tokens.add(token)
        claims = {**self.person, "iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        signed = jwt.encode(claims, "k" * 32, algorithm="HS256")
        return {"access_token": token, "token_type": "Bearer", "id_token": signed}

    def _refuse(self, what: str) -> None:
        self.refusals.append(what)


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not news."""

        def do_GET(self) -> None:  # the library's name
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorize(dict(parse_qsl(parts.query))))
                self.end_headers()
            elif parts.path == "/userinfo":
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                self._json(issuer.person if token in issuer.tokens else None)
            elif parts.path == "/.well-known/openid-configuration":
                self._json(issuer.configuration())
            else:
                self._json(None)

        def do_POST(self) -> None:  # the library's name
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._json(issuer.token(dict(parse_qsl(raw))))

        def _json(self, body: Any) -> None:
            self.send_response(400 if body is None else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body or {"error": "invalid_request"}).encode())

    return Handler


@contextmanager
def an_issuer(**person: Any) -> Iterator[Issuer]:
    issuer = Issuer("", person)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer))
    server.daemon_threads = True
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
