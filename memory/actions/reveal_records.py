"""Show an auditor values that are left out for them: with a reason, and in the log before they are shown."""

from collections.abc import Sequence

from memory.access import Principal
from memory.records.acts import Act, Touched, scope_of
from memory.records.record import Record


def reveal_records(*, principal: Principal, records: Sequence[Record], reason: str) -> None:
    """Write down who is shown these records' values, and why. Others than auditors see them anyway: nothing is written."""
    if principal.role != "auditor" or not records:
        return
    act = Act(principal, "revealed")
    entry = act.log(recordIds=[one.id for one in records])
    act.keep(
        [
            Touched(one.id, one.status, scope_of(one), from_status=one.status, is_main=True)
            for one in records
        ],
        entry,
        reason_code="revealed",
        reason=reason,
    )
