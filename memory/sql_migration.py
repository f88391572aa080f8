"""Decides how SQL migrations are written: `NNNN_x.sql` forward, `NNNN_x.down.sql` backward, Django told of the state.

The DDL is SQL because most of what it says (row-level security, composite keys, triggers, grants) Django can't.
"""

from collections.abc import Sequence
from pathlib import Path

from django.db.migrations.operations import RunSQL, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation


def sql_migration(
    migration_file: str, *, state: Sequence[Operation] = ()
) -> SeparateDatabaseAndState:
    """Operations of a migration whose `.py` is at `migration_file`; `state` is what the models now say."""
    forward = Path(migration_file).with_suffix(".sql")
    backward = forward.with_suffix(".down.sql")
    return SeparateDatabaseAndState(
        database_operations=[RunSQL(forward.read_text("utf-8"), backward.read_text("utf-8"))],
        state_operations=list(state),
    )
