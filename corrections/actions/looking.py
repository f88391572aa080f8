"""What every reveal and export asks and promises: a reason from the known ones, and how long a reveal holds."""

from datetime import timedelta
from typing import Final

from django.db import connection
from django.utils import timezone

from corrections.words import LOOKING_REASONS
from memory.access import Principal
from memory.errors import BadInput
from memory.models.log import GOVERNANCE_RUN

HOLDS_FOR: Final = timedelta(minutes=15)
"""For the same reader, so that going back or reloading is no second reveal."""


def check_reason(reason: str) -> None:
    """Raises BadInput for an unknown reason."""
    if reason not in LOOKING_REASONS:
        raise BadInput.at("reason", "must be one of: " + ", ".join(LOOKING_REASONS))


def was_revealed(principal: Principal, reveal_id: str, *, act: str, name: str, of: str) -> bool:
    """Whether this reader revealed just that a short while ago: `name` is the member of the entry that holds the id `of`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM log_entry e WHERE e.tenant_id = %(tenant)s::uuid AND e.id = %(id)s::text "
            "AND e.run_id = %(run)s::text AND e.writer = %(writer)s::text "
            "AND e.payload_text::jsonb ->> 'type' = %(act)s::text "
            "AND e.payload_text::jsonb ->> %(name)s::text = %(of)s::text "
            "AND e.recorded_at > %(since)s::timestamptz)",
            {
                "tenant": principal.tenant_id,
                "id": reveal_id,
                "run": GOVERNANCE_RUN,
                "writer": principal.writer,
                "act": act,
                "name": name,
                "of": of,
                "since": timezone.now() - HOLDS_FOR,
            },
        )
        return bool(cursor.fetchone()[0])
