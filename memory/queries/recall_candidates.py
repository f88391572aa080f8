"""Which records come into question for a recall: found by key, guarded, matched against the context and ranked in one
statement.

What goes out of SQL is little: the best-ranked of each key, and those that are past their last day. The decision is
made in memory/records/decision.py. Two branches, so that a named person is looked up by the index however many others
share the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.records import clock
from memory.records.bindings import Context
from memory.records.decision import Candidate, Fit
from memory.records.guard import record_guard
from memory.records.overdue import is_over, value_is_over

MOST_TIED = 20
MOST_OVERDUE = 50
MOST_KEYS_OF_PREFIX = 200
_CONTAINERS = ("project", "client", "org")


@dataclass(frozen=True, slots=True)
class Subject:
    type: str
    id: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by `keys` or `key_prefix`.

    `subject`: the one named, in the request or by the caller's being a person.
    """

    context: Context
    keys: Sequence[str] = ()
    key_prefix: str | None = None
    subject: Subject | None = None
    as_of: datetime | None = None

    @property
    def person(self) -> str | None:
        """The person named: then other people's records do not exist."""
        if self.subject is not None and self.subject.type == "user":
            return self.subject.id
        return self.context.user_id

    @property
    def names_two_people(self) -> bool:
        """Whether the subject is one person and the context's `user_id` another: no person's record exists for both."""
        return self.context.user_id not in (None, self.person)

    @property
    def named(self) -> Subject | None:
        if self.subject is not None:
            return self.subject
        return Subject("user", self.context.user_id) if self.context.user_id is not None else None


_NOW = """
FROM memory_record r
WHERE r.tenant_id = %(tenant)s::uuid AND {keys} AND r.status = 'active' AND r.review IS NULL
  AND (r.valid_from IS NULL OR r.valid_from <= %(today)s::date) AND {who} AND {guard}
"""
# A record that was written later and says that it held then counts where nothing was known then.
_THEN = """
FROM memory_record r JOIN LATERAL (
  SELECT true AS is_known, r.level, r.bindings_text, r.valid_from, r.valid_until, r.observations, r.confirmed_at,
         r.disputed_at, r.trust
  WHERE r.status = 'active' AND r.version_from <= %(as_of)s::timestamptz
  UNION ALL
  SELECT true, p.level, p.bindings_text, p.valid_from, p.valid_until, p.observations, p.confirmed_at, p.disputed_at, p.trust
  FROM record_past p
  WHERE p.tenant_id = r.tenant_id AND p.record_id = r.id
    AND p.from_at <= %(as_of)s::timestamptz AND %(as_of)s::timestamptz < p.until_at
  UNION ALL
  SELECT false, r.level, r.bindings_text, r.valid_from, r.valid_until, r.observations, r.confirmed_at, r.disputed_at, r.trust
  WHERE r.status = 'active' AND r.recorded_at > %(as_of)s::timestamptz AND r.valid_from <= %(today)s::date
    AND NOT {over}
  LIMIT 1
) x ON true
WHERE r.tenant_id = %(tenant)s::uuid AND {keys} AND r.status <> 'deleted' AND r.review IS NULL
  AND (r.authority = 'policy' OR EXISTS (
        SELECT 1 FROM record_value v WHERE v.tenant_id = r.tenant_id AND v.record_id = r.id) AND NOT {value_over})
  AND (x.valid_from IS NULL OR x.valid_from <= %(today)s::date)
  AND (x.valid_until IS NULL OR x.valid_until >= %(today)s::date) AND {who} AND {guard}
"""
# What is past its last day by now answers as what has expired.
_OVER = {"over": is_over("r", today="now"), "value_over": value_is_over("r", today="now")}
_SELECT_NOW = """
SELECT r.id, r.key, r.subject_type, r.subject_id, r.authority, r.source_type, r.evidence_ref, r.source_of_truth, r.route,
       r.observations, r.confirmed_at IS NOT NULL AS is_confirmed, r.disputed_at IS NOT NULL AS is_disputed, r.level_rank,
       r.binding_count, r.source_rank, r.bindings_text, r.trust, r.captured_at, r.recorded_at, r.is_upcoming, true AS is_known,
       CASE WHEN r.valid_until < %(today)s::date THEN 0
            WHEN %(context)s::jsonb @> r.bindings AND {here} THEN {matches}
            WHEN {about} THEN 4 END AS fit
"""
_SELECT_THEN = """
SELECT r.id, r.key, r.subject_type, r.subject_id, r.authority, r.source_type, r.evidence_ref, r.source_of_truth, r.route,
       x.observations, x.confirmed_at IS NOT NULL AS is_confirmed, x.disputed_at IS NOT NULL AS is_disputed,
       array_position(ARRAY['instance','task','session','project','client','user','org'], x.level)::smallint AS level_rank,
       jsonb_array_length(jsonb_path_query_array(x.bindings_text::jsonb, '$.keyvalue()'))::smallint AS binding_count,
       r.source_rank, x.bindings_text, x.trust, r.captured_at, r.recorded_at, r.is_upcoming, x.is_known,
       CASE WHEN %(context)s::jsonb @> x.bindings_text::jsonb AND {here} THEN {matches}
            WHEN {about} THEN 4 END AS fit
"""
# The numbers are those of Fit.
_MATCHES = (
    "CASE WHEN r.authority <> 'policy' THEN 3 "
    "WHEN r.written_by_role = 'agent' AND {row}.confirmed_at IS NULL THEN 2 ELSE 1 END"
)
_RANKED = """
WITH candidate AS MATERIALIZED ({branches}
), ranked AS (
  SELECT c.*, rank() OVER best AS place, row_number() OVER newest AS n,
         min(c.fit) FILTER (WHERE c.fit > 0) OVER (PARTITION BY c.key) AS best_fit,
         min(c.subject_id) FILTER (WHERE c.subject_type = 'user') OVER alike
           IS DISTINCT FROM max(c.subject_id) FILTER (WHERE c.subject_type = 'user') OVER alike AS several_people,
         dense_rank() OVER (ORDER BY c.key) AS key_number
  FROM candidate c
  WHERE c.fit IS NOT NULL {known}
  WINDOW alike AS (PARTITION BY c.key, c.fit),
         best AS (PARTITION BY c.key, c.fit ORDER BY c.level_rank, c.binding_count DESC, c.source_rank),
         newest AS (PARTITION BY c.key, c.fit
                    ORDER BY c.level_rank, c.binding_count DESC, c.source_rank, c.is_upcoming DESC, c.recorded_at DESC, c.id DESC)
)
SELECT k.id, k.key, k.fit, k.subject_type, k.subject_id, k.source_type, k.evidence_ref, k.source_of_truth, k.route,
       t.url_template, k.observations, k.is_confirmed, k.is_disputed, k.level_rank, k.binding_count, k.source_rank,
       k.bindings_text, k.trust, k.captured_at, k.recorded_at, k.is_upcoming, v.value_text, k.several_people
FROM ranked k
LEFT JOIN record_value v ON v.tenant_id = %(tenant)s::uuid AND v.record_id = k.id
LEFT JOIN correction_route t ON t.tenant_id = %(tenant)s::uuid AND t.name = k.route AND t.audience = 'person'
WHERE (k.fit = 0 AND k.n <= {most_overdue}
       OR k.fit = k.best_fit AND (k.place = 1 AND k.n <= {most_tied} OR k.is_upcoming))
  AND k.key_number <= {most_keys}
"""


def recall_candidates(principal: Principal, question: Question, at: datetime) -> list[Candidate]:
    """The best candidates of each key, and the overdue ones. One statement."""
    moment = question.as_of or at
    today = clock.day_of(moment, principal.time_zone)
    guard, parameters = record_guard(principal)
    given: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "context": question.context.text,
        "today": today,
        "as_of": question.as_of,
        "now": clock.day_of(at, principal.time_zone),
        **parameters,
    }
    keys = _keys(question, given)
    about = _about(question, given)
    select, source = (_SELECT_NOW, _NOW) if question.as_of is None else (_SELECT_THEN, _THEN)
    matches = _MATCHES.format(row="r" if question.as_of is None else "x")
    branches = [
        select.format(here=here, about=about, matches=matches)
        + source.format(keys=keys, who=who, guard=guard, **_OVER)
        for who, here in _branches(question, given)
    ]
    statement = _RANKED.format(
        branches=" UNION ALL ".join(branches),
        known="" if question.as_of is None else _KNOWN,
        most_overdue=MOST_OVERDUE,
        most_tied=MOST_TIED,
        most_keys=MOST_KEYS_OF_PREFIX,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        rows = cursor.fetchall()
    return [Candidate(row[0], row[1], Fit(row[2]), *row[3:]) for row in rows]


_KNOWN = """
  AND (c.is_known OR NOT EXISTS (SELECT 1 FROM candidate o WHERE o.key = c.key AND o.is_known AND o.fit IS NOT NULL))
"""


def _keys(question: Question, given: dict[str, Any]) -> str:
    if question.key_prefix is None:
        if len(question.keys) == 1:
            given["key"] = question.keys[0]
            return "r.key = %(key)s::text"
        given["keys"] = list(question.keys)
        return "r.key = ANY(%(keys)s::text[])"
    prefix = question.key_prefix.rstrip(".")
    # '/' follows '.' in the order of the column's collation: the range is every key below the prefix.
    given |= {"key": prefix, "below": prefix + ".", "beyond": prefix + "/"}
    itself = "" if question.key_prefix.endswith(".") else "r.key = %(key)s::text OR "
    return f"({itself}r.key > %(below)s::text AND r.key < %(beyond)s::text)"


def _about(question: Question, given: dict[str, Any]) -> str:
    """Of whom it is said that something is remembered elsewhere: of the subject named, else of anybody readable."""
    if question.named is None:
        return "true"
    given |= {"named_type": question.named.type, "named_id": question.named.id}
    return "r.subject_type = %(named_type)s::text AND r.subject_id = %(named_id)s::text"


def _branches(question: Question, given: dict[str, Any]) -> list[tuple[str, str]]:
    """For people and for the rest: which records exist for this recall, and which of them may match here."""
    branches: list[tuple[str, str]] = []
    person, subject = question.person, question.subject
    if question.names_two_people:
        pass
    elif person is not None:
        given["person"] = person
        branches.append(("r.subject_type = 'user' AND r.subject_id = %(person)s::text", "true"))
    elif subject is None:
        branches.append(("r.subject_type = 'user'", "true"))
    who, here = ["r.subject_type IN ('project', 'client', 'org')"], []
    for container in _CONTAINERS:
        if subject is not None and subject.type == container:
            given["container"] = subject.id
            who.append(f"(r.subject_type <> '{container}' OR r.subject_id = %(container)s::text)")
        elif f"{container}_id" in question.context.values:
            # Anything but a string is no subject's id, and names another than every one of them.
            given[f"here_{container}"] = question.context.named(f"{container}_id") or ""
            here.append(
                f"(r.subject_type <> '{container}' OR r.subject_id = %(here_{container})s::text)"
            )
    branches.append((" AND ".join(who), " AND ".join(here) or "true"))
    return branches
