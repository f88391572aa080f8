"""A key's quota in words: what bounds it, how much of that is used, and in which window."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memory.access import Quota
from memory.queries.api_keys import ApiKeyView
from memory.quotas import QuotaUsed, quota_uses

WINDOWS = {
    60: gettext_lazy("minute"),
    3600: gettext_lazy("hour"),
    86_400: gettext_lazy("day"),
    7 * 86_400: gettext_lazy("week"),
}


@dataclass(frozen=True, slots=True)
class QuotaShown:
    """`bounds`: what is bounded, what is used of it and how much there is, each in words. `since`: when the window began."""

    bounds: list[tuple[str, str, str]]
    window: str
    since: datetime | None


def window_words(seconds: int) -> str:
    """What follows “in each”."""
    if seconds in WINDOWS:
        return str(WINDOWS[seconds])
    return ngettext("%(n)d second", "%(n)d seconds", seconds) % {"n": seconds}


def quota_shown(quota: Quota, used: QuotaUsed) -> QuotaShown:
    bounds = []
    if quota.writes is not None:
        bounds.append((_("Writes"), str(used.writes), str(quota.writes)))
    if quota.bytes is not None:
        bounds.append((_("Size"), filesizeformat(used.bytes), filesizeformat(quota.bytes)))
    if quota.subjects is not None:
        bounds.append((_("Subjects"), str(used.subjects), str(quota.subjects)))
    return QuotaShown(bounds, window_words(quota.window_seconds), used.since)


def quotas_shown(tenant_id: UUID, keys: Sequence[ApiKeyView]) -> dict[str, QuotaShown]:
    """By the keys' prefixes, in one statement."""
    uses = quota_uses(tenant_id, [key.prefix for key in keys])
    return {key.prefix: quota_shown(key.quota, uses.get(key.prefix, QuotaUsed())) for key in keys}
