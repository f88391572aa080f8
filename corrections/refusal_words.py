"""Why something was refused, in words for people: what an action's error means on the page where it is shown."""

from datetime import datetime

from django.utils.translation import gettext as _

from corrections.templatetags.shown import on_day
from memory.errors import (
    AlreadyDisputed,
    BadInput,
    DomainError,
    EvidenceUnresolved,
    FactChanged,
    InstanceUnnamed,
    InvariantViolated,
    LegalHoldActive,
    PolicyNotCorrectable,
    RecordChanged,
    RetentionViolation,
    UndoClosed,
)


def refusal_words(error: DomainError) -> str:
    """One or two sentences, without codes."""
    if isinstance(error, UndoClosed):
        return undo_words(error)
    if isinstance(error, BadInput):
        return _bad_input(error)
    if isinstance(error, InvariantViolated) and error.invariant == "I10":
        return _("It can't apply more widely than what it was derived from.")
    if isinstance(error, RetentionViolation):
        return _("It must be kept until %(day)s.") % {"day": _day(error.until)}
    words = {
        LegalHoldActive: _(
            "It has to stay as it is for a legal reason. You can still have it forgotten: then no agent uses it."
        ),
        AlreadyDisputed: _(
            "An admin has yet to look into it. Undo the receipt to say it otherwise."
        ),
        RecordChanged: _("It is not in use any more. What you wanted to change is over already."),
        FactChanged: _("Somebody changed this meanwhile. Look at it anew."),
        InstanceUnnamed: _("Name the case in which this is right."),
        PolicyNotCorrectable: _(
            "This is a rule that is kept elsewhere. Agents read it there each time, and there it is corrected."
        ),
        EvidenceUnresolved: _("This way needs evidence, which this page can't take. Ask an admin."),
        InvariantViolated: _("That can't apply as widely as it would have to."),
    }.get(type(error))
    return words or str(error)


def undo_words(error: DomainError | str) -> str:
    """Why an act can't be undone: from a refusal, or its reason."""
    if isinstance(error, LegalHoldActive):
        error = "legal-hold"
    reason = error.reason if isinstance(error, UndoClosed) else str(error)
    return {
        "undone": _("it was undone already."),
        "no-undo": _("the workspace keeps no time for undoing."),
        "deadline": _("the time for it is over."),
        "changed": _(
            "it changed again since, or something else is in its place. Correct that instead."
        ),
        "legal-hold": _("it has to stay as it is for a legal reason."),
    }.get(reason, reason)


def _bad_input(error: BadInput) -> str:
    paths = {str(issue.get("path", "")) for issue in error.issues}
    if "/since" in paths:
        return _("The day must be one that has begun.")
    if "/prefix" in paths:
        return _("Choose one of the kinds that are offered.")
    if any(path.startswith("/context") for path in paths):
        return _("This memory is not about a case like that. Name another one.")
    if "/new_value" in paths:
        return _("Say what is right. To have it forgotten, use “Forget this”.")
    return _("Something in the form can't be taken as it is. Look at it again.")


def _day(until: str) -> str:
    try:
        return on_day(datetime.fromisoformat(until.replace("Z", "+00:00")))
    except ValueError:
        return until
