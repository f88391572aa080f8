"""What waits in the words that an admin reads: what kind of thing it is, why it waits, and what either decision does."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from corrections.words import Badge, Words
from memory.queries.reviews import ReviewItem

KINDS: dict[str, Words] = {
    "record": _("Proposed memory"),
    "act": _("Asked for without a person's word"),
    "fact": _("Proposed fact"),
    "withdrawal": _("“Not about me”"),
    "dispute": _("“I disagree”"),
}

REASONS: dict[str, Badge] = {
    "instruction": Badge("!", _("Reads like an instruction"), "bad"),
    "wide": Badge("↔", _("Would be read far and wide"), "warn"),
    "contradicts-a-person": Badge("≠", _("Contradicts a person"), "warn"),
    "contradicts-a-policy": Badge("§", _("Stands before a rule"), "warn"),
    "lineage": Badge("↳", _("Derived from what waits"), "info"),
    "forgotten": Badge("∅", _("The person forgot this"), "warn"),
    "retired": Badge("↻", _("This was corrected away"), "warn"),
    "no-word": Badge("?", _("No person said so"), "info"),
    "wrong-person": Badge("‖", _("A person says it is not about them"), "held"),
    "dispute": Badge("!", _("A person disagrees"), "warn"),
    "restored": Badge("⟲", _("Came back with a backup"), "warn"),
}

WHY: dict[str, Words] = {
    "instruction": _(
        "Its text tries to tell an agent what to do. Memory holds what is so; orders come from people and programs."
    ),
    "wide": _("An agent wrote it for the whole workspace or an organisation."),
    "contradicts-a-person": _("A person said otherwise where it would apply."),
    "contradicts-a-policy": _("It would be found before a rule that people or programs set."),
    "lineage": _("What it was derived from waits, or bounds it so that nothing matches."),
    "forgotten": _("An agent wrote again what its person asked to have forgotten."),
    "retired": _("An agent wrote again a value that its person took back."),
    "no-word": _("An agent acts for a person and can show no message of theirs that says so."),
    "wrong-person": _("It is out of use until you decide."),
    "dispute": _("Agents ask before they use it until you decide."),
    "restored": _(
        "After the backup was made it was changed or set aside. What it says may be old."
    ),
}

APPROVE: dict[str, Words] = {
    "record": _("It is used from now on, where it applies."),
    "act": _("It is done now, as if you did it yourself; the person gets a receipt."),
    "fact": _("It is read and found from now on. It stays marked as not verified."),
    "withdrawal": _("It ends, with what was derived from it. What it said is erased."),
    "dispute": _("It ends, with what was derived from it."),
}

APPROVE_OF_FACTS: dict[str, Words] = {
    "change": _(
        "The fact is changed now, as if you did it yourself. What it said before stays in its history."
    ),
    "delete": _(
        "The fact is deleted now, as if you did it yourself: no read finds it any more, and the next sweep erases it."
    ),
}

REJECT: dict[str, Words] = {
    "record": _("It ends without having been used, and what it said is erased."),
    "act": _("It is not done, and what was asked is erased."),
    "fact": _("It ends without having been read; the next sweep erases it."),
    "withdrawal": _("It is used again as before."),
    "dispute": _("It is used again without asking."),
}

BUTTONS: dict[str, tuple[Words, Words]] = {
    "record": (_("Let it be used"), _("Reject it")),
    "act": (_("Do it"), _("Reject it")),
    "fact": (_("Let it be read"), _("Reject it")),
    "withdrawal": (_("The person is right: end it"), _("It is about them: use it again")),
    "dispute": (_("The person is right: end it"), _("It stands: use it again")),
}
"""What approving and rejecting are called for each kind."""

ACTS: dict[str, Words] = {
    "correct": _("Correct what it says"),
    "supersede": _("Change a fact"),
    "delete": _("Delete a fact"),
    "undo": _("Undo a receipt"),
}

LEVELS: dict[str, Words] = {
    "instance": _("in one case"),
    "task": _("in one task"),
    "session": _("in one conversation"),
    "project": _("in one project"),
    "client": _("for one client"),
    "user": _("everywhere for this person"),
    "org": _("in the whole organisation"),
}


def kind_words(one: ReviewItem) -> Words:
    """What kind of thing waits. What an agent asks of a fact is nobody's act on a memory, and has no receipt."""
    if one.kind == "act" and one.fact_id is not None:
        return ACTS["delete" if one.deletes_fact else "supersede"]
    return KINDS[one.kind]


def what_either_does(one: ReviewItem) -> tuple[Words, Words]:
    """What approving does, and what rejecting does."""
    if one.kind == "act" and one.fact_id is not None:
        return APPROVE_OF_FACTS["delete" if one.deletes_fact else "change"], REJECT["act"]
    return APPROVE[one.kind], REJECT[one.kind]


def where_it_applies(level: str, bindings: dict[str, Any]) -> str:
    """The level as an admin reads it, and what it is bound to."""
    words = str(LEVELS.get(level, level))
    bound = ", ".join(f"{name} {value}" for name, value in bindings.items())
    return f"{words} ({bound})" if bound else words


QUARANTINE_STATES: dict[str, Badge] = {
    "active": Badge("‖", _("Out of use"), "held"),
    "rolling-back": Badge("…", _("Being rolled back"), "info"),
    "lifted": Badge("✓", _("Lifted"), "ok"),
    "rolled-back": Badge("↶", _("Rolled back"), ""),
}

OUTCOMES: dict[str, Badge] = {
    "lifted": Badge("✓", _("Used again"), "ok"),
    "replaced": Badge("↻", _("Replaced meanwhile"), ""),
    "removed": Badge("∅", _("Ended"), ""),
    "restored": Badge("↶", _("Ended, what was before it is used again"), "ok"),
    "held": Badge("‖", _("Kept by a legal hold, out of use"), "held"),
    "gone": Badge("–", _("Had ended already"), ""),
}
