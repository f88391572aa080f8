"""Whether an act on a record may speak for its person."""

from collections.abc import Sequence
from datetime import datetime

from memory.records.acts import Act
from memory.records.guard import decides_for_people
from memory.records.words import find_word, use_words


def speaks_for(
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
