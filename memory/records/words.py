"""A person's word: whether an agent's evidence is one.

It names a `user-message` that an app key or a signed-in person appended, that the agent can read, whose scope names
the record's subject, that is newer than the record, and that no other act used. Resolving takes it: the row that says
so goes with the transaction if the act is refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.errors import EvidenceUnresolved
from memory.log_pseudonyms import pseudonym, writer_to_store
from memory.queries.run_log import log_guard

_SUBJECT_COLUMNS = {
    "user": ("user_id", "participant_id"),
    "project": ("project_id",),
    "client": ("org_id",),
    "org": ("org_id",),
}


@dataclass(frozen=True, slots=True)
class Word:
    entry_id: str
    spoken_at: datetime


def find_word(
    principal: Principal,
    ref: str | None,
    *,
    subject_type: str,
    subject_id: str,
    newer_than: datetime | None,
) -> Word | None:
    """The unused word that `ref` names; None when it is none. Log times are kept to the millisecond."""
    if ref is None:
        return None
    rule, parameters = log_guard(principal, "e")
    about = " OR ".join(
        f"e.{column} IN (%(subject)s::text, %(in_log)s::text)"
        for column in _SUBJECT_COLUMNS[subject_type]
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.id, e.recorded_at FROM log_entry e "
            "WHERE e.tenant_id = %(tenant)s::uuid AND e.id = %(ref)s::text AND e.kind = 'user-message' "
            "AND (e.writer_role = 'app' OR starts_with(e.writer, 'user:')) "
            f"AND ({about}) AND {rule} "
            "AND (%(newer_than)s::timestamptz IS NULL "
            "OR e.recorded_at >= date_trunc('milliseconds', %(newer_than)s::timestamptz)) "
            "AND NOT EXISTS (SELECT 1 FROM used_word w WHERE w.tenant_id = e.tenant_id AND w.log_entry_id = e.id)",
            {
                "tenant": principal.tenant_id,
                "ref": ref,
                "subject": subject_id,
                "in_log": pseudonym(principal.tenant_id, subject_id),
                "newer_than": newer_than,
                **parameters,
            },
        )
        row = cursor.fetchone()
    return Word(*row) if row else None


def person_last_spoke(
    tenant_id: UUID, subject_type: str, subject_id: str, key: str
) -> datetime | None:
    """When the newest of a person's words on a (subject, key) that is in use was written or confirmed, in any slot."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(greatest(confirmed_at, "
            "CASE WHEN source_type IN ('user_stated', 'user_correction') THEN recorded_at END)) "
            "FROM memory_record WHERE tenant_id = %(tenant)s::uuid AND subject_type = %(type)s::text "
            "AND subject_id = %(subject)s::text AND key = %(key)s::text AND status = 'active' AND review IS NULL",
            {"tenant": tenant_id, "type": subject_type, "subject": subject_id, "key": key},
        )
        moment: datetime | None = cursor.fetchone()[0]
    return moment


def use_words(tenant_id: UUID, entry_ids: Iterable[str], *, act_id: UUID, at: datetime) -> None:
    """Use words up for one act. Raises EvidenceUnresolved when another act was faster."""
    ids = sorted(set(entry_ids))
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO used_word (tenant_id, log_entry_id, act_id, used_at) "
            "SELECT %(tenant)s::uuid, w, %(act)s::uuid, %(at)s::timestamptz FROM unnest(%(ids)s::text[]) AS w "
            "ON CONFLICT ON CONSTRAINT used_word_once DO NOTHING",
            {"tenant": tenant_id, "act": act_id, "at": at, "ids": ids},
        )
        if cursor.rowcount != len(ids):
            raise EvidenceUnresolved


# Of a long run, what was written last: nobody's write waits for the rest to be read.
_OBSERVED = """
SELECT e.run_id FROM (
  SELECT o.* FROM log_entry o WHERE o.tenant_id = %(tenant)s::uuid AND o.id = %(ref)s::text
  UNION ALL
  (SELECT o.* FROM log_entry o WHERE o.tenant_id = %(tenant)s::uuid AND o.run_id = %(ref)s::text
   ORDER BY o.sequence DESC LIMIT 1000)
) e
WHERE e.writer = %(writer)s::text AND NOT starts_with(e.run_id, 'kindmem.') OR {rule}
LIMIT 1
"""


def observed_run(principal: Principal, ref: str) -> str | None:
    """The run that an inference's evidence names, by its id or by an entry's: what tells observations apart.

    A run counts when the caller may read, or wrote, something in it. Where there is none, whoever decides for people
    is believed, and the reference itself tells; an agent's counts for nothing.
    """
    rule, parameters = log_guard(principal, "e")
    with connection.cursor() as cursor:
        cursor.execute(
            _OBSERVED.format(rule=rule),
            {
                "tenant": principal.tenant_id,
                "ref": ref,
                "writer": writer_to_store(principal),
                **parameters,
            },
        )
        row = cursor.fetchone()
    if row is not None:
        return str(row[0])
    return None if principal.is_agent else ref
