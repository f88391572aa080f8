"""`refresh_sources`: which hosts and handlers a tenant's cached views are refreshed from; shows them, adds, takes away."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.register_refresh import register_refresh
from memory.management.command import OperatorCommand, operator
from memory.tenancy import tenant_context


class Command(OperatorCommand):
    """Show or change what a tenant registered for refreshing."""

    help = (
        "Show which https hosts the handler http-api may ask for a tenant, and which handlers of installed packages it uses; "
        "with options add to them or take away."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        for option, name, help in (
            ("--add-host", "HOST", "a host that may be asked, such as crm.example.com"),
            ("--remove-host", "HOST", "a host that may no longer be asked"),
            ("--add-handler", "ID", "a handler that an installed package offers"),
            ("--remove-handler", "ID", "a handler that is no longer used"),
        ):
            parser.add_argument(option, action="append", default=[], metavar=name, help=help)

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        with tenant_context(principal.tenant_id):
            now = register_refresh(
                principal=principal,
                add_hosts=options["add_host"],
                add_handlers=options["add_handler"],
                remove_hosts=options["remove_host"],
                remove_handlers=options["remove_handler"],
            )
        hosts, handlers = sorted(now.hosts), sorted(now.handlers)
        self.say(
            {"tenant": options["slug"], "hosts": hosts, "handlers": handlers},
            f"hosts: {', '.join(hosts) or 'none'}\nhandlers: http-api{''.join(f', {one}' for one in handlers)}",
        )
