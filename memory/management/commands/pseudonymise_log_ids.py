"""`pseudonymise_log_ids`: choose whether a tenant's new log entries name people by keyed hashes."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.set_log_ids import set_log_ids
from memory.management.command import OperatorCommand, operator
from memory.tenancy import tenant_context


class Command(OperatorCommand):
    """Turn pseudonyms in the log on or off."""

    help = "Store a keyed hash in place of a person's id in a tenant's new log entries (on), or the id itself (off)."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("choice", choices=("on", "off"))

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        is_on = options["choice"] == "on"
        with tenant_context(principal.tenant_id):
            is_changed = set_log_ids(principal=principal, pseudonymise=is_on)
        self.say(
            {"pseudonymiseLogIds": is_on, "changed": is_changed},
            f"New entries of {options['slug']} name people by {'keyed hashes' if is_on else 'their ids'}"
            + ("." if is_changed else ", as before."),
        )
