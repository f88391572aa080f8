"""The product as `make up` starts it, on a free port and data of its own, for tests that break parts of it while it serves."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.postgres.test_up import PROJECT, Up, environment, manage, start_up

_MAKE_TENANT = """
import django
django.setup()
from tests.builders import make_tenant
kit = make_tenant()
print(kit.slug, kit.token("app", everything=True, may=("read", "write", "append", "emit", "tenant-wide")))
"""


@dataclass
class Product:
    """A running `up` with a tenant, and the token of an app key that holds everything in it."""

    up: Up
    environ: Mapping[str, str]
    slug: str
    token: str

    @property
    def address(self) -> str:
        """host:port"""
        return self.up.url.removeprefix("http://")

    def manage(self, *words: str) -> Any:
        """What an operator command answers with `--json`, however it ends."""
        done = subprocess.run(
            manage(*words, "--json"),
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def wire(self, address: str | None = None) -> "Wire":
        return Wire(address or self.address, self.token)


@contextmanager
def product(home: Path, programs: str, **more: str) -> Iterator[Product]:
    """Start it on `home`, make the tenant, end it all afterwards. `more` is added to its environment."""
    environ = environment(home, programs, **more)
    up = start_up(home, environ)
    try:
        made = subprocess.run(
            [sys.executable, "-c", _MAKE_TENANT],
            cwd=PROJECT,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        yield Product(up, environ, *made.stdout.split())
    finally:
        up.process.terminate()
        up.process.communicate()


@dataclass(frozen=True)
class Told:
    """An answer. `body` is as it was sent."""

    status: int
    body: bytes
    is_replayed: bool

    def json(self) -> Any:
        return json.loads(self.body)


Lost = (OSError, http.client.HTTPException)
"""What a client meets when nobody answers, or the connection ends before the answer does."""


@dataclass
class Wire:
    """One client with a connection of its own, made anew after it was lost; or, unless it `keeps` it, after each answer."""

    address: str
    token: str
    keeps: bool = True
    _open: http.client.HTTPConnection | None = field(default=None, repr=False)

    def ask(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Told:
        """Raises one of Lost."""
        connection = self._open or http.client.HTTPConnection(self.address, timeout=20)
        self._open = None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            told = Told(
                answer.status,
                answer.read(),
                answer.headers.get("Idempotency-Replayed") == "true",
            )
        except Lost:
            connection.close()
            raise
        if self.keeps:
            self._open = connection
        else:
            connection.close()
        return told

    def is_served(self) -> bool:
        """Whether somebody answers, with the database behind it."""
        try:
            return self.ask("GET", "/readyz").status == 200
        except Lost:
            return False

    def pages(self, path: str) -> list[Any]:
        """Everything that a list has, page by page."""
        found: list[Any] = []
        cursor = ""
        while True:
            told = self.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=200{cursor}")
            assert told.status == 200, told.body
            page = told.json()
            found += page["data"]
            if not page["hasMore"]:
                return found
            cursor = f"&cursor={page['nextCursor']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *of_error: object) -> None:
        if self._open is not None:
            self._open.close()
