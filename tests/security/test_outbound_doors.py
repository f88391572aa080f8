"""Every door out of the product against every address that must not be reached: nothing is connected to but what was checked.

Five doors go to addresses that tenants or settings name, through the one fetcher. Two go where only an operator's settings lead,
perhaps inside the house: those follow no answer elsewhere, use no proxy of the environment and speak https.
"""

import ast
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
import requests
from django.core.exceptions import ImproperlyConfigured

from corrections.issuer_session import IssuerSession
from memory import fetcher
from memory.actions import deliver_webhooks
from memory.embeddings.openai_compatible import OpenAiCompatible
from memory.embeddings.provider import EmbeddingError
from memory.integrity import timestamps, witnesses
from memory.integrity.cosignatures import PublicKey
from memory.integrity.notes import Note
from memory.policy_sources import reading
from memory.policy_sources.sources import PolicySource
from memory.refresh.handler import RefreshError, RefreshRequest
from memory.refresh.http_api import http_api
from tests.builders import TenantKit
from tests.completeness.sources import files, name_of, nodes
from tests.fetcher.server import NAME, Server, says, self_signed
from tests.fetcher.test_rules import INWARD


class NotReached(Exception):
    """The door said, in its own way, that it got no answer."""


def _policy_source(url: str) -> None:
    try:
        reading._value_text(PolicySource(uuid4(), "https://p.example/", url, "", True), 2.0)
    except reading.Unavailable as error:
        raise NotReached from error


def _refresh(url: str) -> None:
    hosts = frozenset({NAME, "127.0.0.1", "localhost", "metadata", "127.0.0.1.nip.example"})
    request = RefreshRequest("acme", "f1", "note", "http-api", url, None, None, hosts)
    try:
        http_api(request, 2.0)
    except RefreshError as error:
        raise NotReached from error


def _webhook(url: str) -> None:
    due = deliver_webhooks._Due(uuid4(), uuid4(), "e1", url, ("whsec_c2VjcmV0",), b"{}")
    if deliver_webhooks._send(due).status is None:
        raise NotReached


def _witness(url: str) -> None:
    key = PublicKey("witness.example", 4, bytes(32))
    try:
        witnesses.ask(
            witnesses.ChosenWitness(key, url.rstrip("/")),
            0,
            [],
            Note("o", 0, bytes(32), "", ()),
            "text",
        )
    except witnesses.WitnessFailed as error:
        raise NotReached from error


def _time_stamp(url: str) -> None:
    try:
        timestamps.ask_stamp(timestamps.Authority("tsa", url, ()), "note")
    except timestamps.StampFailed as error:
        raise NotReached from error


DOORS: dict[str, Callable[[str], None]] = {
    "policy source": _policy_source,
    "refresh handler": _refresh,
    "webhook": _webhook,
    "witness": _witness,
    "time stamp": _time_stamp,
}
THROUGH_THE_FETCHER = {
    "memory/policy_sources/reading.py",
    "memory/refresh/http_api.py",
    "memory/actions/deliver_webhooks.py",
    "memory/integrity/witnesses.py",
    "memory/integrity/timestamps.py",
}
"""What calls `fetch`: one for each door."""
OF_THE_OPERATOR = {
    "memory/embeddings/openai_compatible.py": "the endpoint of embeddings",
    "corrections/issuer_session.py": "the issuer of single sign-on",
}
SPEAK_OTHERWISE = {
    "memory/fetcher.py": "the one fetcher",
    "memory/refresh/http_api.py": "loads the fetcher's certificates early",
    "kindmem/management/commands/up.py": "asks its own web server whether it is up",
    "kindmem/web_worker.py": "reads what clients send",
}
_NETWORK = {"socket", "http", "urllib", "requests", "httpx", "httpcore", "smtplib", "ftplib"}

WRITTEN = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://0/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1%25eth0]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://localhost/",
    "https://metadata/",
    f"https://{NAME}@127.0.0.1/",
    f"https://127.0.0.1\\@{NAME}/",
    f"https://{NAME}:22/",
    f"https://{NAME}:6379/",
    f"http://{NAME}/",
    f"ftp://{NAME}/",
    f"gopher://{NAME}/",
    "file:///etc/passwd",
    "//127.0.0.1/",
    f"https://{NAME}/\r\nX-Injected: 1",
]
LEADING_INWARDS = [address for address in INWARD if ":" in address or address[:1].isdigit()]
"""What the name resolves to."""


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`made`: every connection. `answers`: what the resolver says, one answer a question. `port`: where public addresses lead."""

    net = SimpleNamespace(made=[], asked=[], answers=iter(()), port=None)

    def resolve(host: str, port: int, **options: Any) -> Any:
        net.asked.append(host)
        found = next(net.answers, [])
        if not found:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    def create_connection(address: Any, *given: Any, **options: Any) -> socket.socket:
        net.made.append(address)
        if net.port is None:
            raise ConnectionRefusedError
        connected = socket.socket()
        connected.connect(("127.0.0.1", net.port))
        return connected

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", create_connection)
    monkeypatch.setattr(fetcher, "is_in_transaction", lambda: False)
    return net


@pytest.mark.parametrize("door", DOORS)
def test_no_door_connects_to_an_address_that_is_written_to_mislead(door: str, network: Any) -> None:
    for url in WRITTEN:
        network.answers = iter([["127.0.0.1"], ["127.0.0.1"]])
        with pytest.raises(NotReached):
            DOORS[door](url)
        assert network.made == [], url


@pytest.mark.parametrize("door", DOORS)
def test_no_door_connects_where_a_name_leads_inwards_alone_or_beside_a_public_address(
    door: str, network: Any
) -> None:
    for address in LEADING_INWARDS:
        for told in ([address], ["93.184.215.14", address]):
            network.answers = iter([told])
            with pytest.raises(NotReached):
                DOORS[door](f"https://{NAME}/")
            assert network.made == [], told


@pytest.mark.parametrize("door", DOORS)
def test_a_name_that_changes_its_answer_is_asked_once_and_connected_to_as_checked(
    door: str, network: Any
) -> None:
    network.answers = iter([["93.184.215.14"], ["127.0.0.1"], ["169.254.169.254"]])
    with pytest.raises(NotReached):
        DOORS[door](f"https://{NAME}/")
    assert network.asked == [NAME]
    assert network.made == [("93.184.215.14", 443)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return self_signed(NAME, tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("door", DOORS)
def test_no_door_goes_where_an_answer_leads(
    door: str,
    status: int,
    network: Any,
    certificate: tuple[ssl.SSLContext, ssl.SSLContext],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serving, trusting = certificate
    monkeypatch.setattr(fetcher, "_trusted", lambda: trusting)
    led = f"HTTP/1.1 {status} X\r\nLocation: https://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    with Server(says(led.encode()), tls=serving) as server:
        network.port = server.port
        network.answers = iter([["93.184.215.14"]] * 2)
        with pytest.raises(NotReached):
            DOORS[door](f"https://{NAME}/")
    assert len(server.seen) == 1
    assert network.made == [("93.184.215.14", 443)]
    assert network.asked == [NAME]


@pytest.mark.parametrize("url", [url for url in WRITTEN if url.startswith("http")])
def test_what_a_tenant_names_is_refused_when_it_is_named(acme: TenantKit, url: str) -> None:
    admin = acme.client("admin")
    webhook = admin.post("/v1/memory/webhooks", {"name": "x", "url": url})
    source = admin.post(
        "/v1/memory/policy-sources", {"match": "https://policies.example/", "fetch_url": url}
    )
    for answer, path in ((webhook, "/url"), (source, "/fetch_url")):
        assert answer.status_code == 400, answer.content
        (issue,) = answer.json()["error"]["details"]["issues"]
        assert issue["path"] == path
        assert "127.0.0.1" not in answer.content.decode()


def _imported(path: Path) -> set[str]:
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            # `http` alone has no client in it, nor has what reads an address.
            found |= {module.split(".")[0]} if module != "urllib.parse" else set()
    return found & _NETWORK


def test_there_is_no_other_door() -> None:
    speaking = {name_of(path) for path in files(".py") if _imported(path)}
    served = {"memory/integrity/witness_server.py", "memory/integrity/witness_state.py"}
    assert speaking - served == {*OF_THE_OPERATOR, *SPEAK_OTHERWISE}
    fetching = {
        name_of(path)
        for path in files(".py")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and node.module == "memory.fetcher"
        and any(alias.name == "fetch" for alias in node.names)
    }
    assert fetching == THROUGH_THE_FETCHER
    assert len(fetching) == len(DOORS)


# -- where only the operator's settings lead -----------------------------------------------------


@pytest.fixture
def leading_on() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback whose every answer leads to another address; the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *given: Any) -> None:
            """Requests are not news."""

        def do_GET(self) -> None:  # the library's name
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """They lead nowhere: whoever used them would not arrive."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")


@pytest.mark.usefixtures("proxies_of_the_environment")
def test_the_endpoint_of_embeddings_is_spoken_to_alone(leading_on: tuple[str, list[str]]) -> None:
    url, asked = leading_on
    provider = OpenAiCompatible(url=url, name="m", key="k")
    with pytest.raises(EmbeddingError):
        provider.embed(["text"], timeout_seconds=5)
    provider.close()
    assert asked == ["/embeddings"]
    for plain in ("http://models.example/", "ftp://models.example", "https://u@models.example/"):
        with pytest.raises(ImproperlyConfigured):
            OpenAiCompatible(url=plain, name="m")


@pytest.mark.usefixtures("proxies_of_the_environment")
def test_the_issuer_is_spoken_to_alone(leading_on: tuple[str, list[str]], settings: Any) -> None:
    url, asked = leading_on
    with IssuerSession() as session, pytest.raises(requests.RequestException):
        session.get(f"{url}/.well-known/openid-configuration")
    assert asked == ["/.well-known/openid-configuration"]
    settings.SESSION_COOKIE_SECURE = True
    for plain in (url, "http://issuer.example/", "ftp://issuer.example/"):
        with IssuerSession() as session, pytest.raises(requests.RequestException):
            session.get(plain)
    assert len(asked) == 1


def test_a_document_of_another_issuer_is_not_believed(settings: Any) -> None:
    said = {"issuer": ""}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *given: Any) -> None:
            """Requests are not news."""

        def do_GET(self) -> None:  # the library's name
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for issuer, is_believed in (
            (url, True),
            (f"{url}/", True),
            ("https://evil.example", False),
        ):
            said["issuer"] = issuer
            with IssuerSession() as session:
                if is_believed:
                    assert session.get(f"{url}/.well-known/openid-configuration").ok
                    continue
                with pytest.raises(requests.RequestException, match="another issuer"):
                    session.get(f"{url}/.well-known/openid-configuration")
        server.shutdown()
