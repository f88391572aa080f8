"""Events and deliveries of webhooks in the words that people read."""

from django.utils.translation import gettext_lazy as _

from corrections.words import Badge, Words

EVENT_WORDS: dict[str, Words] = {
    "record.corrected": _("A memory was corrected"),
    "record.confirmed": _("A memory was confirmed"),
    "record.forgotten": _("A memory was forgotten, with what was derived from it"),
    "record.expired": _("Memories came to the end of their time"),
    "record.erased": _("An erasure took a memory"),
    "record.undone": _("A correction or a forgetting was undone"),
    "review.waiting": _("Something waits for a person to look at it"),
    "review.approved": _("What waited was approved"),
    "review.rejected": _("What waited was rejected"),
    "quarantine.placed": _("What one key or one run wrote is out of use"),
    "quarantine.lifted": _("What was out of use is in use again"),
    "quarantine.rolled-back": _("What one key or one run wrote was rolled back"),
    "fact.superseded": _("A fact has a new revision"),
    "fact.deleted": _("A fact was removed"),
    "fact.verified": _("A person found a fact right"),
    "fact.destroyed": _("Facts past their retention were destroyed"),
    "hold.placed": _("A legal hold was placed"),
    "hold.release-requested": _("Somebody asks for a legal hold's release"),
    "hold.released": _("A legal hold was released"),
    "erasure.requested": _("An erasure was asked for"),
    "erasure.done": _("An erasure came to its end"),
    "run.verification-failed": _("A run, or the log of seals, does not verify"),
    "key.created": _("An API key was made"),
    "key.rotated": _("An API key was replaced"),
    "key.revoked": _("An API key was revoked"),
    "webhook.ping": _("A test"),
}
DELIVERY_STATES: dict[str, Badge] = {
    "pending": Badge("…", _("waiting"), "info"),
    "delivered": Badge("✓", _("delivered"), "ok"),
    "failed": Badge("✗", _("given up"), "bad"),
}
WEBHOOK_STATES: dict[str, Badge] = {
    "": Badge("✓", _("on"), "ok"),
    "retrying": Badge("!", _("failing, tried again"), "warn"),
    "paused": Badge("–", _("paused"), ""),
    "gone": Badge("✗", _("off: the receiver is gone"), "bad"),
    "failing": Badge("✗", _("off: failed for days"), "bad"),
}
FAILURES: dict[str, Words] = {
    "fetch-refused": _("address refused, or a redirect"),
    "fetch-timeout": _("no answer in time"),
    "fetch-too-large": _("answer too long"),
    "fetch-failed": _("no connection"),
}
