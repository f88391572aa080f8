"""Go on with holds: count in what a large one names, let go what a released one kept, and roll back what it kept from that;
batch by batch, from wherever it is.
"""

import time
from typing import Final

from memory.access import Principal
from memory.actions.roll_back_quarantine import roll_back_freed
from memory.hold_items import BATCH, let_go_more, take_in_more
from memory.tenancy import tenant_context

ROLLED_BACK_A_TURN: Final = 20
"""Facts, each with a vector to make."""


def finish_holds(
    principal: Principal, *, most_seconds: float | None = None, batch: int = BATCH
) -> bool:
    """Whether there is more to do. Opens its own transactions; call it outside any."""
    deadline = None if most_seconds is None else time.monotonic() + most_seconds
    for step in (take_in_more, let_go_more):
        while True:
            if deadline is not None and time.monotonic() >= deadline:
                return True
            with tenant_context(principal.tenant_id):
                if not step(principal, limit=batch):
                    break
    return roll_back_freed(principal=principal, most=ROLLED_BACK_A_TURN)
