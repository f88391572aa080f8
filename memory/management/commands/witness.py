"""`witness`: a small C2SP witness, for another machine than the log's; see docs/witness.md."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.integrity.cosignatures import PublicKey, log_key
from memory.integrity.notes import NoteError
from memory.integrity.witness_server import WitnessServer
from memory.integrity.witnessing import Witness, WitnessStateError
from memory.management.command import OperatorCommand, Refused


class Command(OperatorCommand):
    """Run a witness until a signal ends it."""

    help = "Cosign checkpoints of logs that only ever grow, on POST /add-checkpoint. Needs no database."

    needs_database = False

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--state", required=True, metavar="FILE", help="its key and what it saw"
        )
        parser.add_argument("--name", default="", help="the witness's name, for the first start")
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8790)
        parser.add_argument(
            "--log",
            action="append",
            default=[],
            metavar="KEY",
            help="verifier key of a log, as GET /v1/memory/checkpoints/{size} says it; may be repeated",
        )
        parser.add_argument("--logs", metavar="FILE", help="the same, one a line")

    def run(self, options: dict[str, Any]) -> None:
        keys = _keys(options["log"], options["logs"])
        try:
            witness = Witness(Path(options["state"]), options["name"], keys)
        except WitnessStateError as error:
            raise Refused(f"{error}.") from error
        try:
            with WitnessServer(witness, options["host"], options["port"]) as server:
                host, port = server.server_address[:2]
                url = f"http://{host!s}:{port}"
                self.say(
                    {"verifierKey": witness.key.as_text(), "url": url},
                    f"{witness.key.as_text()} {url}",
                )
                self.stdout.flush()
                server.serve_forever()
        except KeyboardInterrupt:
            return
        finally:
            witness.close()


def _keys(texts: list[str], file: str | None) -> list[PublicKey]:
    """The logs to look at. Raises Refused."""
    if file is not None:
        texts = [*texts, *Path(file).read_text("utf-8").splitlines()]
    texts = [text.strip() for text in texts if text.strip() and not text.startswith("#")]
    try:
        keys = [log_key(text) for text in texts]
    except NoteError as error:
        raise Refused(f"A key of a log can't be read: {error}.") from error
    if not keys:
        raise Refused("Name at least one log, with --log or --logs.")
    return keys
