"""`citus_plan`: print the SQL that spreads the tables over Citus by tenant."""

from typing import Any

from memory.management.command import OperatorCommand, Refused
from memory.scale.citus_plan import NoPlan, citus_plan


class Command(OperatorCommand):
    """Print a plan; nothing is changed."""

    help = "Print the SQL that turns the tables into Citus distributed tables by tenant. It changes nothing."

    def run(self, options: dict[str, Any]) -> None:
        try:
            plan = citus_plan()
        except NoPlan as error:
            raise Refused(f"There is no plan: {error}.", code="no-plan") from error
        self.say({"sql": plan}, plan.rstrip("\n"))
