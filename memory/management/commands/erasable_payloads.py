"""`erasable_payloads`: choose whether a tenant's new entries are hashed so that their payloads can be erased and still verify."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.set_hash_version import set_hash_version
from memory.management.command import OperatorCommand, operator
from memory.tenancy import tenant_context


class Command(OperatorCommand):
    """Turn erasable payloads on or off."""

    help = "Hash a tenant's new log entries so that a payload can be erased later and the run still verifies (on), or not (off)."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("choice", choices=("on", "off"))

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        version = 2 if options["choice"] == "on" else 1
        with tenant_context(principal.tenant_id):
            is_changed = set_hash_version(principal=principal, hash_version=version)
        self.say(
            {"hashVersion": version, "changed": is_changed},
            f"New entries of {options['slug']} are hashed by version {version}"
            + ("." if is_changed else ", as before."),
        )
