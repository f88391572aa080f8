"""A small time stamp authority of RFC 3161, made of DER by hand, that answers as badly as a test wants."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from memory.integrity.verify_bundle import der

SEQUENCE, SET, INTEGER, OCTETS, OID, TIME = 0x30, 0x31, 0x02, 0x04, 0x06, 0x18
SHA256 = "2.16.840.1.101.3.4.2.1"
ECDSA_SHA256 = "1.2.840.10045.4.3.2"
SIGNED_DATA = "1.2.840.113549.1.7.2"
TST_INFO = "1.2.840.113549.1.9.16.1.4"
CONTENT_TYPE, MESSAGE_DIGEST = "1.2.840.113549.1.9.3", "1.2.840.113549.1.9.4"
SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.47"


def tlv(kind: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    length = len(content)
    if length < 0x80:
        return bytes([kind, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([kind, 0x80 | len(size)]) + size + content


def oid(text: str) -> bytes:
    first, second, *rest = (int(part) for part in text.split("."))
    encoded = bytes([40 * first + second])
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(0x80 | number & 0x7F)
        encoded += bytes(reversed(groups))
    return tlv(OID, encoded)


def integer(number: int) -> bytes:
    return tlv(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def attribute(kind: str, value: bytes) -> bytes:
    return tlv(SEQUENCE, oid(kind), tlv(SET, value))


@dataclass
class Authority:
    """`now`: the time it stamps; `imprint`: what it stamps in the place of what it was asked to."""

    folder: Path
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    imprint: bytes | None = None
    nonce: bytes | None = None
    is_refusing: bool = False
    asked: int = 0

    def __post_init__(self) -> None:
        self.root_key, self.key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        self.root = self._certificate("a root", self.root_key, None)
        self.certificate = self._certificate("a time stamp authority", self.key, self.root)
        self.roots = self.folder / "roots.pem"
        self.roots.write_bytes(self.root.public_bytes(serialization.Encoding.PEM))

    def _certificate(
        self, name: str, key: ec.EllipticCurvePrivateKey, issuer: x509.Certificate | None
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.subject if issuer else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=400))
            .add_extension(x509.BasicConstraints(issuer is None, None), critical=True)
        )
        if issuer is not None:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
            builder = builder.add_extension(usage, critical=True)
        return builder.sign(self.root_key, hashes.SHA256())

    def answer(self, request: bytes) -> bytes:
        """A TimeStampResp to a TimeStampReq."""
        self.asked += 1
        if self.is_refusing:
            return tlv(SEQUENCE, tlv(SEQUENCE, integer(2)))
        [(_, asked)] = der(request)
        parts = der(asked)
        imprint = tlv(SEQUENCE, parts[1][1])
        if self.imprint is not None:
            imprint = tlv(SEQUENCE, tlv(SEQUENCE, oid(SHA256)), tlv(OCTETS, self.imprint))
        nonce = [tlv(INTEGER, self.nonce or value) for kind, value in parts[2:] if kind == INTEGER]
        info = tlv(
            SEQUENCE,
            integer(1),
            oid("1.2.3.4.1"),
            imprint,
            integer(self.asked),
            tlv(TIME, self.now.strftime("%Y%m%d%H%M%SZ").encode()),
            *nonce,
        )
        return tlv(SEQUENCE, tlv(SEQUENCE, integer(0)), self._signed(info))

    def _signed(self, info: bytes) -> bytes:
        certificate = self.certificate.public_bytes(serialization.Encoding.DER)
        algorithm = tlv(SEQUENCE, oid(SHA256))
        attributes = b"".join(
            sorted(
                (
                    attribute(CONTENT_TYPE, oid(TST_INFO)),
                    attribute(MESSAGE_DIGEST, tlv(OCTETS, sha256(info).digest())),
                    attribute(
                        SIGNING_CERTIFICATE,
                        tlv(
                            SEQUENCE,
                            tlv(
                                SEQUENCE,
                                tlv(SEQUENCE, tlv(OCTETS, sha256(certificate).digest())),
                            ),
                        ),
                    ),
                )
            )
        )
        signature = self.key.sign(tlv(SET, attributes), ec.ECDSA(hashes.SHA256()))
        signer = tlv(
            SEQUENCE,
            integer(1),
            tlv(
                SEQUENCE,
                self.certificate.issuer.public_bytes(),
                integer(self.certificate.serial_number),
            ),
            algorithm,
            tlv(0xA0, attributes),
            tlv(SEQUENCE, oid(ECDSA_SHA256)),
            tlv(OCTETS, signature),
        )
        signed = tlv(
            SEQUENCE,
            integer(3),
            tlv(SET, algorithm),
            tlv(SEQUENCE, oid(TST_INFO), tlv(0xA0, tlv(OCTETS, info))),
            tlv(0xA0, certificate),
            tlv(SET, signer),
        )
        return tlv(SEQUENCE, oid(SIGNED_DATA), tlv(0xA0, signed))


@contextmanager
def serving(answer: Callable[[bytes], bytes], status: int = 200) -> Iterator[str]:
    """An authority over HTTP, on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/timestamp-query"
            body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/tsr"
        finally:
            server.shutdown()
            thread.join()
