"""`declare_type`: what a fact type says about its facts."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory import admission
from memory.actions.declare_type import MOST_DAYS, Declaration, declare_type
from memory.api.json_text import dumps
from memory.content_schema import MOST_BYTES
from memory.errors import BadInput
from memory.management.command import OperatorCommand, operator
from memory.retention import Windows
from memory.tenancy import tenant_context

_NAME_MOST = 256


class Command(OperatorCommand):
    """Declare a fact type."""

    help = (
        "Declare which searches find a type's facts, what shape they have and how long they stay."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("type", help="the type's name")
        parser.add_argument("--no-keyword", action="store_true", help="not searched by keyword")
        parser.add_argument("--no-semantic", action="store_true", help="not searched by meaning")
        parser.add_argument("--model", help="the embedding model (default: the installation's)")
        parser.add_argument(
            "--schema", type=Path, metavar="FILE", help="JSON Schema 2020-12 of the content"
        )
        parser.add_argument(
            "--keep-days", type=int, metavar="D", help=f"kept so long, 1 to {MOST_DAYS}"
        )
        parser.add_argument(
            "--delete-after-days", type=int, metavar="D", help="read so long, not less than kept"
        )

        parser.add_argument(
            "--no-retention",
            action="store_true",
            help="take the type's windows away (left out, they stay as they are)",
        )

    def run(self, options: dict[str, Any]) -> None:
        if not 1 <= len(options["type"]) <= _NAME_MOST:
            raise BadInput.at("type", f"must have 1 to {_NAME_MOST} characters")
        principal = operator(options["slug"])
        with tenant_context(principal.tenant_id):
            declared = declare_type(
                principal=principal,
                type=options["type"],
                declaration=Declaration(
                    keyword=not options["no_keyword"],
                    semantic=not options["no_semantic"],
                    embedding_model=options["model"],
                    content_schema=_schema(options["schema"]),
                    windows=_windows(options),
                ),
            )
        self.say(json.loads(dumps(declared.wire())), f"Type {declared.type} is declared.")


def _windows(options: dict[str, Any]) -> Windows | None:
    said: Windows = (options["keep_days"], options["delete_after_days"])
    if options["no_retention"] and any(one is not None for one in said):
        raise BadInput.at("no-retention", "can't be given together with windows")
    is_said = options["no_retention"] or any(one is not None for one in said)
    return said if is_said else None


def _schema(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return admission.admit(path.read_bytes(), max_bytes=MOST_BYTES)
    except admission.BadInput as error:
        raise BadInput.at("schema", error.issues[0]["message"]) from None
    except admission.TooLarge:
        raise BadInput.at("schema", f"is larger than {MOST_BYTES} bytes") from None
