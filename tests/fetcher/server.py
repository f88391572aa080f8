"""A server on loopback that behaves as badly as a test wants."""

import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memory.fetcher import Fetched, Resolver, fetch

NAME = "policies.example"


@dataclass
class Server:
    """A server on loopback that hands each connection to `behave`, one thread each."""

    behave: "Callable[[socket.socket, Server], None]"
    tls: ssl.SSLContext | None = None
    waits_for_request: bool = True
    seen: list[bytes] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()
        return self

    def __exit__(self, *exception):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in list(self.threads):
            thread.join()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self.threads.append(thread)
            thread.start()

    def _serve(self, connection):
        with contextlib.suppress(OSError):
            connection.settimeout(10)
            if self.tls is not None:
                self.tls.sni_callback = lambda _, name, __: self.names.append(name)
                connection = self.tls.wrap_socket(connection, server_side=True)
            request = b""
            while self.waits_for_request and b"\r\n\r\n" not in request:
                piece = connection.recv(65_536)
                if not piece:
                    break
                request += piece
            self.seen.append(request)
            self.behave(connection, self)
        connection.close()


def says(answer):
    return lambda connection, server: connection.sendall(answer)


def answers(body=b"{}", more=b""):
    return says(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n%s\r\n%s" % (len(body), more, body))


def self_signed(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server with a certificate of its own making, and one that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    trusting = ssl.create_default_context(cadata=signed.public_bytes(serialization.Encoding.DER))
    return serving, trusting


def resolves_to(*addresses: str) -> Resolver:
    return lambda host, port: list(addresses)


def fetch_local(server: Server, path: str = "/", **options: Any) -> Fetched:
    options.setdefault("timeout_seconds", 5)
    return fetch(f"http://127.0.0.1:{server.port}{path}", allow_loopback=True, **options)
