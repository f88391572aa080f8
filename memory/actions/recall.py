"""Recall: what an agent may use right now, for one key, several, or a prefix.

One statement finds, one counts the use of what was answered. What was met past its last day is expired. A policy's
value is not read here: that happens after the transaction (`complete`), so that no connection waits for somebody
else's server.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Principal
from memory.actions.append_log_entries import append_log_entries
from memory.api.json_text import Raw
from memory.ids import new_text_id
from memory.instants import instant_text
from memory.log_entry import NewEntry
from memory.policy_sources.reading import Reading, read_policies
from memory.policy_sources.sources import PolicySource, find_sources, source_of
from memory.queries.recall_candidates import Question, recall_candidates
from memory.records import clock
from memory.records.acts import Act, ended
from memory.records.decision import NOTHING, Candidate, Fit, Verdict, decide
from memory.records.ending import expire
from memory.records.routes import page_route
from memory.records.upcoming import begun_things, lock_thing_today


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer for one key. `source`: where its policy's value is still to be read."""

    key: str
    verdict: Verdict
    checked_at: datetime
    tenant_slug: str
    is_masked: bool = False
    source: PolicySource | None = None
    policy_text: str | None = None

    def wire(self) -> dict[str, Any]:
        """The RecallResult."""
        verdict, record = self.verdict, self.verdict.record
        body: dict[str, Any] = {
            "value": None if record is None else _value(record, self.policy_text),
            "decision": verdict.decision,
            "record_id": record and record.id,
            "source_type": record and record.source_type,
            "evidence_ref": record and record.evidence_ref,
            "reason": verdict.reason,
            "correction_route": record and record.route,
            "correction_url": record and self._url(record),
        }
        if verdict.candidates:
            body["candidates"] = [self._candidate(one) for one in verdict.candidates]
        if record is not None:
            body["trust"] = record.trust
            body["captured_at"] = instant_text(record.captured_at)
        body["checked_at"] = instant_text(self.checked_at)
        if self.is_masked:
            del body["value"]
            body["meta"] = {"masked": True}
        return body

    def _candidate(self, one: Candidate) -> dict[str, Any]:
        body: dict[str, Any] = {
            "record_id": one.id,
            "value": _value(one, None),
            "source_type": one.source_type,
            "evidence_ref": one.evidence_ref,
            "correction_route": one.route,
            "correction_url": self._url(one),
            "trust": one.trust,
            "captured_at": instant_text(one.captured_at),
        }
        if self.is_masked:
            del body["value"]
        return body

    def _url(self, record: Candidate) -> str:
        route = replace(page_route(record.route), url_template=record.url_template)
        return route.url(self.tenant_slug, record.id)


def _value(record: Candidate, policy_text: str | None) -> Any:
    text = policy_text if policy_text is not None else record.value_text
    return None if text is None else Raw(text)


def recall(
    *, principal: Principal, question: Question, run_id: str | None = None
) -> dict[str, Recalled]:
    """The answer for each key asked, or for each key found under the prefix.

    Raises PermissionDenied, RunReserved (for `run_id`).
    """
    at = clock.now()
    candidates = recall_candidates(principal, question, at)
    is_auditor = principal.role == "auditor"
    if question.as_of is None and not is_auditor and _begin_met(principal, candidates):
        candidates = recall_candidates(principal, question, at)
    by_key: dict[str, list[Candidate]] = {key: [] for key in question.keys}
    for one in candidates:
        by_key.setdefault(one.key, []).append(one)
    verdicts = {
        key: decide(
            found,
            is_consequential=question.context.is_consequential,
            is_named=question.named is not None,
            own_subject=principal.subject,
        )
        for key, found in by_key.items()
    }
    if question.key_prefix is not None:
        verdicts = {key: verdict for key, verdict in verdicts.items() if verdict is not NOTHING}
    if question.as_of is None and not is_auditor:
        _expire_met(principal, candidates, at)
        _count_use(principal, verdicts.values(), at)
    if run_id is not None:
        _log_retrieval(principal, question, run_id, verdicts.values())
    sources = _sources(principal, verdicts.values(), is_asked_now=question.as_of is None)
    return {
        key: _recalled(principal, key, verdict, question, at, sources)
        for key, verdict in verdicts.items()
    }


def complete(
    recalled: Mapping[str, Recalled],
    read: Callable[[Sequence[PolicySource]], Sequence[Reading]] = read_policies,
) -> dict[str, Recalled]:
    """The answers with the values of policies read from their sources. Call it outside any transaction.

    `read`: one reading a source, in order; an adapter reads in process.
    """
    waiting = [one for one in recalled.values() if one.source is not None]
    readings = read([one.source for one in waiting if one.source is not None]) if waiting else []
    answers = dict(recalled)
    for one, reading in zip(waiting, readings, strict=True):
        if reading.value_text is None:
            verdict = replace(one.verdict, reason="source-unavailable")
            answers[one.key] = replace(one, source=None, verdict=verdict)
        else:
            answers[one.key] = replace(one, source=None, policy_text=reading.value_text)
    return answers


def _recalled(
    principal: Principal,
    key: str,
    verdict: Verdict,
    question: Question,
    at: datetime,
    sources: Sequence[PolicySource],
) -> Recalled:
    record, source = verdict.record, None
    if verdict.reason == "policy-fetched" and record is not None:
        if question.as_of is not None:
            verdict = replace(verdict, reason="policy-as-of")
        else:
            source = source_of(list(sources), record.source_of_truth or "")
            if source is None:
                verdict = replace(verdict, reason="source-not-allowed")
    return Recalled(
        key=key,
        verdict=verdict,
        checked_at=question.as_of or at,
        tenant_slug=principal.tenant_slug,
        is_masked=principal.role == "auditor",
        source=None if principal.role == "auditor" else source,
    )


def _sources(
    principal: Principal, verdicts: Iterable[Verdict], *, is_asked_now: bool
) -> list[PolicySource]:
    if is_asked_now and any(verdict.reason == "policy-fetched" for verdict in verdicts):
        return find_sources(principal.tenant_id)
    return []


def _begin_met(principal: Principal, candidates: Sequence[Candidate]) -> bool:
    """Let what has begun take its place; whether there was any. What it ends may have outranked it until now."""
    begun = [one.id for one in candidates if one.is_upcoming]
    things = begun_things(principal, ids=begun, limit=len(begun)) if begun else []
    for thing in things:
        lock_thing_today(principal, *thing)
    return bool(things)


def _expire_met(principal: Principal, candidates: Sequence[Candidate], at: datetime) -> None:
    overdue = [one.id for one in candidates if one.fit is Fit.OVERDUE]
    if not overdue:
        return
    act = Act(principal, "expired", at=at)
    endings = expire(principal.tenant_id, overdue, at)
    if endings:
        ids = [one.id for one in endings]
        entry = act.log(recordIds=ids, reason="valid-until")
        act.keep(ended(endings, "expired"), entry, reason_code="valid-until")


_COUNT_ONE = """
UPDATE record_usage SET use_count = use_count + 1, last_used_at = greatest(last_used_at, %(at)s::timestamptz)
WHERE tenant_id = %(tenant)s::uuid AND record_id = %(id)s::text
"""
# Rows are locked in one order, so that recalls of the same records never wait for each other in a circle.
_COUNT_MANY = """
WITH used AS (
  SELECT record_id FROM record_usage WHERE tenant_id = %(tenant)s::uuid AND record_id = ANY(%(ids)s::text[])
  ORDER BY record_id FOR UPDATE
)
UPDATE record_usage u SET use_count = u.use_count + 1, last_used_at = greatest(u.last_used_at, %(at)s::timestamptz)
FROM used WHERE u.tenant_id = %(tenant)s::uuid AND u.record_id = used.record_id
"""


def _count_use(principal: Principal, verdicts: Iterable[Verdict], at: datetime) -> None:
    used = sorted(
        {verdict.record.id for verdict in verdicts if verdict.used and verdict.record is not None}
    )
    if not used:
        return
    with connection.cursor() as cursor:
        if len(used) == 1:
            cursor.execute(_COUNT_ONE, {"tenant": principal.tenant_id, "id": used[0], "at": at})
        else:
            cursor.execute(_COUNT_MANY, {"tenant": principal.tenant_id, "ids": used, "at": at})


def _log_retrieval(
    principal: Principal, question: Question, run_id: str, verdicts: Iterable[Verdict]
) -> None:
    """One `retrieval` entry: ids and decisions, never keys or values."""
    results: list[dict[str, Any]] = [
        {
            "recordId": verdict.record.id if verdict.record is not None else None,
            "decision": verdict.decision,
            "reason": verdict.reason,
        }
        for verdict in verdicts
    ]
    entry = NewEntry(
        kind="retrieval",
        scope=_log_scope(principal, question),
        id=new_text_id(),
        actor=principal.writer,
        payload={"type": "record.recalled", "results": results},
    )
    append_log_entries(principal=principal, run_id=run_id, entries=[entry])


def _log_scope(principal: Principal, question: Question) -> dict[str, str]:
    """The containers that the recall names and the caller has: whoever lacks one of them doesn't read the entry."""
    has, scope = principal.containers, {"tenantId": principal.tenant_slug}
    if question.person is not None and (has.everything or question.person in has.users):
        scope["userId"] = question.person
    project = question.context.named("project_id")
    if question.subject is not None and question.subject.type == "project":
        project = question.subject.id
    if project is not None and (
        has.everything or project in has.projects or project in has.on_behalf_of
    ):
        scope["projectId"] = project
    if (
        question.subject is not None
        and question.subject.type in ("client", "org")
        and (has.everything or question.subject.id in has.orgs)
    ):
        scope["orgId"] = question.subject.id
    return scope
