"""A real Chromium on a real server: threads, committed data, static files; any console error or policy violation fails.

Set KINDMEM_SHOTS to a folder to keep a picture of every page that the matrix visits.
"""

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.builders import TenantKit, make_tenant
from tests.pages.people import Person

# Playwright's own loop runs in this thread; the database is used between its calls, never during one.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not news."""


@pytest.fixture(scope="session")
def address(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """Where the product answers."""
    with django_db_blocker.unblock():
        server = ThreadedWSGIServer(("127.0.0.1", 0), QuietHandler)
        server.daemon_threads = True
        server.set_app(StaticFilesHandler(WSGIHandler()))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = os.environ.get("KINDMEM_CHROMIUM") or shutil.which("chromium")
    assert path, "Chromium is missing: `make browser` says how to get it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visitor:
    """A person's browser window. `troubles` collects what must not happen; `allowed` are answers a test expects to fail."""

    person: Person
    context: BrowserContext
    page: Page
    address: str
    troubles: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(self.url(path))
        return self.page

    def url(self, path: str) -> str:
        return self.address + self.person.path(path)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))

    def _note(self, kind: str, text: str) -> None:
        if kind == "error" and not any(word in text for word in self.allowed):
            self.troubles.append(text)


class Windows:
    """Opens windows for people, and looks after all of them at the end of a test."""

    def __init__(self, chromium: Browser, address: str) -> None:
        self._chromium, self._address = chromium, address
        self._open: list[Visitor] = []

    def of(
        self,
        person: Person,
        *,
        width: int = 1280,
        theme: str = "light",
        scripts: bool = True,
        touch: bool = False,
    ) -> Visitor:
        context = self._chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,  # type: ignore[arg-type]  # light or dark
            java_script_enabled=scripts,
            reduced_motion="reduce",
            has_touch=touch,
        )
        context.set_default_timeout(15_000)
        if "sessionid" in person.browser.cookies:
            session = person.browser.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": session, "url": self._address}])
        visitor = Visitor(person, context, context.new_page(), self._address)
        visitor.watch(visitor.page)
        self._open.append(visitor)
        return visitor

    def close(self) -> None:
        troubles = [trouble for visitor in self._open for trouble in visitor.troubles]
        for visitor in self._open:
            visitor.context.close()
        assert not troubles


@pytest.fixture
def windows(live_db: None, chromium: Browser, address: str, settings: Any) -> Iterator[Windows]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    opened = Windows(chromium, address)
    yield opened
    opened.close()


@pytest.fixture
def kit(live_db: None) -> TenantKit:
    return make_tenant()
