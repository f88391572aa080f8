"""Codes in the words that people read: verdicts, kinds of entries, reasons for looking. Codes stay in addresses and files."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Words = str | Promise


@dataclass(frozen=True, slots=True)
class Badge:
    """A state as icon, word and tone (ok, warn, bad, info, held or plain); colour never speaks alone."""

    icon: str
    words: Words
    tone: str


CHAIN_STATES: dict[str, Badge] = {
    "verified": Badge("✓", _("Intact"), "ok"),
    "verified-unsealed-tail": Badge("✓", _("Intact, end not anchored yet"), "ok"),
    "erased-attested": Badge("✓", _("Intact, payloads erased"), "ok"),
    "unanchored": Badge("✓", _("Intact, not anchored"), "ok"),
    "linkage-only": Badge("~", _("Links hold, content erased"), "info"),
    "not-complete": Badge("…", _("Not complete"), "warn"),
    "nothing-to-verify": Badge("–", _("Nothing to verify"), ""),
    "tampered": Badge("✗", _("Broken"), "bad"),
    "unverified": Badge("?", _("Not verified yet"), ""),
}

TAMPERINGS: dict[str, tuple[Words, Words]] = {
    "content": (
        _("Content or hash changed"),
        _("What is stored of this entry is not what was written."),
    ),
    "link": (
        _("Link broken"),
        _(
            "What follows does not continue what came before: an entry names another hash than the one before it has, or the "
            "run's head and its last entry do not agree."
        ),
    ),
    "gap": (_("Entries missing"), _("One or more entries that must be here are not.")),
    "fork": (_("Fork"), _("Two histories go on from the same entry.")),
    "duplicate": (_("Duplicate"), _("The same sequence number is there more than once.")),
    "reordered": (_("Order changed"), _("The entry was written at another place of this run.")),
    "scope": (
        _("Moved here"),
        _("The entry was written in another run or for another workspace."),
    ),
    "seal": (
        _("Seal broken"),
        _(
            "What is stored is not what the signed checkpoints say: the entry differs, is gone, or was put behind the end."
        ),
    ),
    "checkpoint": (
        _("Checkpoint broken"),
        _("The log of seals is not what its signed checkpoints say."),
    ),
    "anchor": (_("Anchor broken"), _("What was anchored outside is not what is here.")),
}

OF_THE_SEALS = frozenset({"checkpoint", "anchor"})
"""Classes whose place is a leaf of the log of seals, not an entry of the run that was looked at."""

KINDS: dict[str, Words] = {
    "user-message": _("User message"),
    "agent-message": _("Agent message"),
    "system-message": _("System message"),
    "tool-call": _("Tool call"),
    "tool-result": _("Tool result"),
    "internal-thought": _("Internal thought"),
    "retrieval": _("Retrieval"),
    "artifact-produced": _("Artifact produced"),
    "event-emitted": _("Event emitted"),
    "event-received": _("Event received"),
    "guardrail-triggered": _("Guardrail triggered"),
    "wait-suspended": _("Wait begun"),
    "wait-resumed": _("Wait ended"),
}

DECISIONS: dict[str, Words] = {
    "apply": _("used it"),
    "ask": _("was told to ask you first"),
    "revalidate": _("was told to look again first"),
    "none": _("was not given it"),
}
"""What an agent that recalled a memory was told to do with it."""

LOOKING_REASONS: dict[str, Words] = {
    "complaint": _("A person complained"),
    "incident": _("An incident is looked into"),
    "routine-audit": _("Routine audit sample"),
    "legal-request": _("A court or an authority asked"),
    "debugging": _("A fault is looked into"),
}
"""Why somebody looked: codes, since the log of governance takes no free text."""


def chain_badge(state: str) -> Badge:
    return CHAIN_STATES.get(state, Badge("?", state, ""))


JOB_STATES: dict[str, Badge] = {
    "queued": Badge("…", _("Waiting its turn"), "info"),
    "running": Badge("…", _("Reading"), "info"),
    "cancelled": Badge("–", _("Called off"), ""),
    "failed": Badge("!", _("Given up"), "bad"),
}


def job_badge(status: str, state: str | None) -> Badge:
    """What a verification by the worker found, or how it stands."""
    return chain_badge(state) if state else JOB_STATES[status]


KEY_STATES: dict[str, Badge] = {
    "active": Badge("✓", _("In use"), "ok"),
    "expired": Badge("–", _("Expired"), ""),
    "revoked": Badge("✗", _("Revoked"), "bad"),
}


def key_badge(status: str) -> Badge:
    return KEY_STATES[status]


def kind_words(kind: str) -> Words:
    return KINDS.get(kind, kind)


ROUTE_LABELS: dict[str, Words] = {
    "confirm": _("That's right"),
    "fix-value": _("Fix what it says"),
    "out-of-date": _("It used to be true"),
    "wrong-person": _("Not about me"),
    "dispute": _("I disagree"),
    "forget": _("Forget this"),
    "never-infer": _("Don't guess this about me"),
}
"""What each built-in route is called, where the tenant has no words of its own."""

ROUTE_EFFECTS: dict[str, Words] = {
    "confirm": _("Agents know that you agree with it."),
    "fix-value": _("Put the right words in its place: for this case, or everywhere if you say so."),
    "out-of-date": _("It was right once. Agents stop using it as of today."),
    "wrong-person": _("Nobody uses it any more, and an admin looks into it."),
    "dispute": _("Say why you disagree. Agents ask before they use it, until it is decided."),
    "forget": _("Agents stop using it at once; after the time for undoing it is erased."),
    "never-infer": _("Agents may not guess this about you again."),
}
"""What each built-in route does, said to the person who takes it."""

FIELD_LABELS: dict[str, Words] = {
    "new_value": _("What is right"),
    "case_name": _("Kind of case"),
    "case_other": _("Another kind"),
    "case_value": _("Which one"),
    "reason": _("Why?"),
    "since": _("Not true since"),
    "statement": _("What is wrong with it?"),
    "prefix": _("Guess no more about"),
    "count": _("How many stop being used"),
}
"""Fields of people's forms, for pages that show again what was typed."""
