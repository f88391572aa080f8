"""The six methods of the agent memory audit kit over the product's own actions, for the kit's harness and for tests.

Each store works in an empty tenant of its own, as an app's key. Policies are read from `policy_source(key, context)` in process,
at each recall, where the product would fetch them from a registered source; everything else is what the API does.
Source: the memory record schema's kit, `MemoryStore`.
"""

import copy
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import transaction

from memory import admission
from memory.access import ABILITIES, Principal, system_principal
from memory.actions.correct import correct
from memory.actions.create_api_key import create_api_key
from memory.actions.create_tenant import create_tenant
from memory.actions.emit_event import emit_event
from memory.actions.forget_record import forget_record
from memory.actions.recall import complete, recall
from memory.actions.register_policy_source import register_policy_source
from memory.actions.remember import remember
from memory.api.authentication import principal_of_token
from memory.api.json_text import dumps
from memory.canonical import canonical
from memory.errors import BadInput
from memory.policy_sources.reading import Reading
from memory.policy_sources.sources import find_sources, source_of
from memory.queries.explain import explain
from memory.queries.recall_candidates import Question
from memory.records import clock
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.shape import REMEMBER, read_draft
from memory.tenancy import tenant_context

PolicySource = Callable[[str, dict[str, Any]], Any]


class AuditKitStore:
    """A memory of one tenant. `now`: the instant that it is for every act; None: the clock's.

    What the product refuses is raised as its DomainError.
    """

    def __init__(
        self, policy_source: PolicySource | None = None, *, now: datetime | None = None
    ) -> None:
        self._policy_source = policy_source
        self._now = now
        self.slug = f"audit-kit-{secrets.token_hex(6)}"
        self.tenant_id = create_tenant(slug=self.slug)
        self._operator = system_principal(self.tenant_id, self.slug, id="audit-kit")
        with tenant_context(self.tenant_id):
            token = create_api_key(
                principal=self._operator,
                name="audit-kit",
                role="app",
                everything=True,
                abilities=ABILITIES,
            ).token
        with transaction.atomic():
            self.principal: Principal = principal_of_token(token)

    def remember(self, record: Mapping[str, Any]) -> str:
        """The id of the record as kept, or of the one that says the same."""
        body = _admitted(record)
        REMEMBER.check(body)
        with self._act():
            draft = read_draft(body)
            if draft.authority == "policy" and draft.source_of_truth is not None:
                self._let_answer(draft.source_of_truth)
            told = remember(principal=self.principal, draft=draft)
        return told.record.id if told.record is not None else str(told.pending_id)

    def recall(self, key: str, context: Mapping[str, Any]) -> dict[str, Any]:
        """The RecallResult: `value decision record_id source_type evidence_ref`, and what the API says beside them."""
        question = Question(context=read_context(_admitted(context)), keys=[key])
        with self._act():
            recalled = recall(principal=self.principal, question=question)
        (told,) = complete(recalled, read=lambda _: [self._reading(key, context)]).values()
        return _plain(told.wire())

    def correct(
        self, key: str, new_value: Any, context: Mapping[str, Any], broaden: bool = False
    ) -> str:
        """The id of the correction, which binds to the instance that the context describes."""
        asked = Correction(
            new_value=_admitted(new_value),
            context=read_context(_admitted(context)),
            key=key,
            broaden=broaden,
        )
        with self._act():
            corrected = correct(principal=self.principal, asked=asked)
        return corrected.record.id if corrected.record is not None else str(corrected.pending_id)

    def forget(self, record_id: str) -> None:
        """Tombstone the record, and all that was derived from it."""
        with self._act():
            forget_record(principal=self.principal, record_id=record_id)

    def emit(self, event: Mapping[str, Any]) -> None:
        """Something happened: `type`, and what it happened to."""
        said = _admitted(event)
        with self._act():
            emit_event(principal=self.principal, type=said.pop("type"), bindings=said)

    def explain(self, record_id: str) -> dict[str, Any]:
        """Where the record came from, where it applies and how it is corrected, also of a tombstone."""
        with self._act():
            return _plain(explain(self.principal, record_id).wire(masked=False))

    @contextmanager
    def _act(self) -> Iterator[None]:
        """One transaction of the tenant, at the fixed instant where there is one."""
        at = clock.fixed_at(self._now) if self._now is not None else nullcontext()
        with at, tenant_context(self.tenant_id):
            yield

    def _let_answer(self, source_of_truth: str) -> None:
        """Register the place that a policy points at, so that it may answer."""
        if source_of(find_sources(self.tenant_id), source_of_truth) is None:
            parts = urlsplit(source_of_truth)
            match = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
            register_policy_source(principal=self._operator, match=match, fetch_url=match)

    def _reading(self, key: str, context: Mapping[str, Any]) -> Reading:
        """What the source says now; nothing of it is kept. A source that is down raises OSError, as a socket does."""
        if self._policy_source is None:
            return Reading(None)
        try:
            value = self._policy_source(key, copy.deepcopy(dict(context)))
        except OSError:
            return Reading(None)
        return Reading(None if value is None else canonical(_admitted(value)))


def _admitted(value: Any) -> Any:
    """The value as it would come in over HTTP. Raises BadInput."""
    try:
        return admission.admit(
            json.dumps(value).encode(), max_bytes=settings.KINDMEM_BODY_MAX_BYTES
        )
    except admission.BadInput as error:
        issues = [{"path": one["path"], "message": one["message"]} for one in error.issues]
        raise BadInput(issues=issues) from None


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(dumps(body))
    return told
