"""When a record, or its value, is over: in SQL for whoever reads, and on a record that was read.

Past its last day in the tenant's zone an active record counts as expired, also before anything marked it so: no read shows more
of it than of an expired one. What is sensitive is no longer needed then, whatever became of the record meanwhile.
"""

from dataclasses import replace
from datetime import date

from memory.records.record import Record


def is_over(alias: str, *, today: str = "today") -> str:
    """The record is active and past its last day. `today`: the parameter that says what day it is."""
    return (
        f"({alias}.status = 'active' AND coalesce({alias}.valid_until < %({today})s::date, false))"
    )


def value_is_over(alias: str, *, today: str = "today") -> str:
    """Its value, where it is still there, is shown no more."""
    return (
        f"(coalesce({alias}.valid_until < %({today})s::date, false) AND ("
        f"{alias}.status = 'active' AND NOT ({alias}.retain_value AND {alias}.sensitivity <> 'sensitive')"
        f" OR {alias}.status = 'superseded' AND {alias}.sensitivity = 'sensitive'))"
    )


def as_shown(record: Record, today: date) -> Record:
    """The record as it is read on a day."""
    if record.valid_until is None or record.valid_until >= today:
        return record
    if record.status == "active":
        text = record.value_text if record.keeps_value else None
        return replace(record, status="expired", value_text=text)
    if record.status == "superseded" and record.sensitivity == "sensitive":
        return replace(record, value_text=None)
    return record
