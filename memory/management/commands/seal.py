"""`seal`: seal what moved in a tenant's log now, sign the head and anchor it."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.drop_unsigned_leaves import drop_unsigned_leaves
from memory.actions.seal_tenant import seal_tenant
from memory.management.command import OperatorCommand, operator


class Command(OperatorCommand):
    """Seal a tenant's log."""

    help = "Seal what moved in a tenant's log, sign the new head and anchor it. Exits 10 when a run does not verify."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument(
            "--drop-unsigned",
            action="store_true",
            help="first drop leaves past the last signed head that this server would not have made",
        )

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        lines = []
        if options["drop_unsigned"]:
            dropped = drop_unsigned_leaves(principal=principal)
            lines.append(f"{dropped} leaves that were not this server's are dropped.")
        sealed = seal_tenant(tenant_id=principal.tenant_id, tenant_slug=principal.tenant_slug)
        lines += [f"{sealed.entries} entries sealed; the log has {sealed.size} leaves."]
        lines += [
            f"NOT SEALED: {bad.run_id} does not verify: sequence {bad.sequence} ({bad.tampering.value})"
            for bad in sealed.refused
        ]
        self.say(
            {
                "size": sealed.size,
                "leaves": sealed.leaves,
                "entries": sealed.entries,
                "refused": [bad.as_wire() for bad in sealed.refused],
            },
            "\n".join(lines),
        )
        if sealed.refused:
            sys.exit(10)
