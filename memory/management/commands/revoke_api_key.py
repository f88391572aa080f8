"""`revoke_api_key`: an end for a key, now."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.revoke_api_key import revoke_api_key
from memory.instants import instant_text
from memory.management.command import OperatorCommand, operator


class Command(OperatorCommand):
    """Revoke an API key."""

    help = "Revoke an API key; nothing brings it back."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("prefix", help="the ten characters after kmk_ in the token")

    def run(self, options: dict[str, Any]) -> None:
        revoked_at = instant_text(
            revoke_api_key(principal=operator(options["slug"]), prefix=options["prefix"])
        )
        self.say(
            {"prefix": options["prefix"], "revokedAt": revoked_at},
            f"The key {options['prefix']} is revoked since {revoked_at}.",
        )
