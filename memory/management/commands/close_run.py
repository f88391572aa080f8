"""`close_run`: a run takes no more entries, and its log says that it ended there."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.close_run import close_run
from memory.actions.seal_tenant import seal_tenant
from memory.management.command import OperatorCommand, operator
from memory.tenancy import tenant_context


class Command(OperatorCommand):
    """Close a run."""

    help = "Close a run for good: it takes no more entries, and a run-closed leaf in the log of seals says where it ends."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--run", required=True, metavar="R", help="the run's id")

    def run(self, options: dict[str, Any]) -> None:
        principal = operator(options["slug"])
        with tenant_context(principal.tenant_id):
            closed = close_run(principal=principal, run_id=options["run"])
        sealed = seal_tenant(tenant_id=principal.tenant_id, tenant_slug=principal.tenant_slug)
        self.say(
            {"runId": closed.run_id, "toSequence": closed.to_sequence, "size": sealed.size},
            f"{closed.run_id} ends with entry {closed.to_sequence}; the log has {sealed.size} leaves.",
        )
