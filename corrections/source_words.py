"""Why a policy source gave no value, in words."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

_WORDS = {
    "fetch-timeout": gettext_lazy("It did not answer within two seconds."),
    "fetch-refused": gettext_lazy(
        "It may not be asked so: only public https hosts are, and redirects are not followed."
    ),
    "fetch-too-large": gettext_lazy("Its answer is larger than 64 KiB."),
    "fetch-failed": gettext_lazy("It could not be reached, or broke off."),
    "not-json": gettext_lazy("Its answer is not JSON that is taken."),
    "nothing-at-pointer": gettext_lazy("Its answer has nothing at this pointer."),
}


def trial_words(why: str | None) -> str:
    """What a trial came to, for its reader; empty when it gave a value."""
    if why is None:
        return ""
    status = why.removeprefix("status-")
    if status != why:
        return _(
            "It answered with status %(status)s instead of 200. Redirects are not followed."
        ) % {"status": status}
    return str(_WORDS.get(why, why))
