"""`rotate_signing_key`: sign checkpoints with a new key from now on."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.rotate_signing_key import rotate_signing_key
from memory.management.command import OperatorCommand


class Command(OperatorCommand):
    """Rotate the signing key."""

    help = "Sign checkpoints with a new key. Every tenant's log names the change; old checkpoints still verify."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--finish", action="store_true", help="go on with a rotation that left tenants out"
        )

    def run(self, options: dict[str, Any]) -> None:
        rotated = rotate_signing_key(finish_only=options["finish"])
        text = f"Key {rotated.new_key_id} signs now, after {rotated.old_key_id}."
        if rotated.not_sealed:
            text += (
                " Not sealed, so the old private key stays: "
                + ", ".join(rotated.not_sealed)
                + ". See to them, then run again with --finish."
            )
        self.say(
            {
                "oldKeyId": rotated.old_key_id,
                "newKeyId": rotated.new_key_id,
                "notSealed": list(rotated.not_sealed),
            },
            text,
        )
