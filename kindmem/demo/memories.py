"""What the demo's agents remember about a person: said, guessed, corrected, confirmed, forgotten, and used."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from memory.access import Principal
from memory.actions.confirm_record import confirm_record
from memory.actions.correct import correct
from memory.actions.forget_record import forget_record
from memory.actions.recall import recall
from memory.actions.remember import remember
from memory.instants import instant_text
from memory.queries.recall_candidates import Question
from memory.records.bindings import read_context
from memory.records.correction_target import Correction
from memory.records.shape import read_draft


def act_on(by: Mapping[str, Principal], said: Mapping[str, Any]) -> None:
    """One line of `records.json`, by whom it names, in the caller's tenant transaction."""
    _ACTS[said["act"]](by[said["by"]], said)


def _remember(principal: Principal, said: Mapping[str, Any]) -> None:
    source = {**said["record"]["source"], "captured_at": instant_text(timezone.now())}
    remember(principal=principal, draft=read_draft({**said["record"], "source": source}))


def _correct(principal: Principal, said: Mapping[str, Any]) -> None:
    asked = Correction(
        new_value=said["value"],
        context=read_context(said["context"]),
        record_id=said["id"],
        evidence=(said["evidence"][0], said["evidence"][1]),
    )
    correct(principal=principal, asked=asked)


def _confirm(principal: Principal, said: Mapping[str, Any]) -> None:
    confirm_record(principal=principal, record_id=said["id"])


def _forget(principal: Principal, said: Mapping[str, Any]) -> None:
    forget_record(principal=principal, record_id=said["id"], with_undo=True)


def _recall(principal: Principal, said: Mapping[str, Any]) -> None:
    question = Question(context=read_context(said["context"]), keys=(said["key"],))
    recall(principal=principal, question=question)


_ACTS = {
    "remember": _remember,
    "correct": _correct,
    "confirm": _confirm,
    "forget": _forget,
    "recall": _recall,
}
