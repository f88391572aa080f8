"""Whether an act on a record may speak for its person, and be done now."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memory.records.acts import Act
from memory.records.guard import decides_for_people
from memory.records.words import find_word, use_words
from memory.trust.instructions import reads_like_instruction


def waits_for_review(
    act: Act,
    subject_type: str,
    subject_id: str,
    refs: Sequence[str | None],
    *,
    newer_than: datetime | None,
    said: Any,
) -> str | None:
    """Why the act waits for review, `instruction` or `no-word`; None when it is done now. `said`: all that it says.

    What an agent says that reads like an instruction waits whoever's word it is said to be: before the word is used up.
    """
    if act.principal.is_agent and reads_like_instruction(said):
        return "instruction"
    speaks = _speaks_for(act, subject_type, subject_id, refs, newer_than=newer_than)
    return None if speaks else "no-word"


def _speaks_for(
    act: Act,
    subject_type: str,
    subject_id: str,
    refs: Sequence[str | None],
    *,
    newer_than: datetime | None,
) -> bool:
    """A person's, an app's or an admin's own act; an agent's with a word for each of `refs`, which are then used up.

    `newer_than`: when the record that it is about was written. Raises EvidenceUnresolved when another act used a word
    at the same time.
    """
    if decides_for_people(act.principal):
        return True
    words = [
        find_word(
            act.principal,
            ref,
            subject_type=subject_type,
            subject_id=subject_id,
            newer_than=newer_than,
        )
        for ref in refs
    ]
    found = [word.entry_id for word in words if word is not None]
    if len(found) < len(refs):
        return False
    use_words(act.tenant_id, found, act_id=act.id, at=act.at)
    return True
