"""What the tests of witnesses share: a log in memory, a witness of it, and both over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory.integrity.cosignatures import (
    log_key,
)
from memory.integrity.merkle import consistency_proof, leaf_hash, root_of_hashes, subtrees_of
from memory.integrity.notes import (
    checkpoint_body,
    signature_line,
    signed_note,
    verifier_key,
)
from memory.integrity.proof_text import consistency_text
from memory.integrity.witness_server import WitnessServer
from memory.integrity.witnessing import Witness

LOG = "log.example/acme"
NAME = "witness.example/w1"
LEAVES = [leaf_hash(b"leaf %d" % n) for n in range(20)]
OTHER = [*LEAVES[:3], *(leaf_hash(b"other %d" % n) for n in range(17))]


class Log:
    """A log in memory, signed by a key of its own."""

    def __init__(self, name: str = LOG) -> None:
        self.name = name
        self.private = Ed25519PrivateKey.generate()
        self.public = self.private.public_key().public_bytes_raw()

    @property
    def key(self) -> str:
        return verifier_key(self.name, self.public)

    def note(self, leaves: list[bytes], size: int) -> str:
        body = checkpoint_body(self.name, size, root_of_hashes(leaves[:size]))
        line = signature_line(self.name, self.public, self.private.sign(body.encode()))
        return signed_note(body, [line])

    def request(self, old: int, size: int, leaves: list[bytes] = LEAVES) -> bytes:
        path = consistency_proof(subtrees_of(leaves), old, size)
        return consistency_text(old, path, self.note(leaves, size)).encode()


@contextmanager
def a_witness(path: Path, *keys: str, name: str = NAME) -> Iterator[Witness]:
    made = Witness(path, name, [log_key(key) for key in keys])
    try:
        yield made
    finally:
        made.close()


def state(tmp_path: Path) -> Path:
    return tmp_path / "witness"


@contextmanager
def serving(one: Witness) -> Iterator[str]:
    """The witness over HTTP, on loopback."""
    with WitnessServer(one, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
