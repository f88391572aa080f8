"""How values are shown: moments in the reader's zone, hashes that open, text with its hidden controls visible, roles in words."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corrections.addresses import back_query
from corrections.navigation import role_name

register = template.Library()

# Controls of writing direction, invisible separators, and all other controls but line feed and tab.
_HIDDEN = re.compile(
    r"([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff])"
)
_PIECES = re.compile(r"[^@.\-_+/]{1,24}[@.\-_+/]?|[@.\-_+/]")
_MONTHS = [
    gettext_lazy("Jan"),
    gettext_lazy("Feb"),
    gettext_lazy("Mar"),
    gettext_lazy("Apr"),
    gettext_lazy("May"),
    gettext_lazy("Jun"),
    gettext_lazy("Jul"),
    gettext_lazy("Aug"),
    gettext_lazy("Sep"),
    gettext_lazy("Oct"),
    gettext_lazy("Nov"),
    gettext_lazy("Dec"),
]


def _instant(value: datetime | str) -> datetime:
    return datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value


@register.filter
def on_day(moment: date) -> str:
    """A day as people write it."""
    return _("%(day)d %(month)s %(year)d") % {
        "day": moment.day,
        "month": _MONTHS[moment.month - 1],
        "year": moment.year,
    }


@register.simple_tag
def when(value: datetime | str | None, precision: str = "minute") -> str:
    """A moment in the reader's zone, which is named. precision: day, minute, second or millisecond."""
    if not value:
        return "–"
    instant = _instant(value)
    local = timezone.localtime(instant)
    written = {
        "day": "",
        "minute": local.strftime("%H:%M"),
        "second": local.strftime("%H:%M:%S"),
        "millisecond": local.strftime("%H:%M:%S.") + f"{local.microsecond // 1000:03d}",
    }[precision]
    utc = instant.astimezone(timezone.get_fixed_timezone(0)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return format_html(
        '<time datetime="{}Z">{}</time>',
        utc,
        " ".join(filter(None, [on_day(local), written, local.tzname() if written else ""])),
    )


@register.simple_tag
def time_of_day(value: datetime | str | None) -> str:
    """The time alone, to the millisecond, for rows whose day is in a heading."""
    if not value:
        return "–"
    instant = _instant(value)
    local = timezone.localtime(instant)
    utc = instant.astimezone(timezone.get_fixed_timezone(0)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    shown = local.strftime("%H:%M:%S.") + f"{local.microsecond // 1000:03d}"
    return format_html('<time datetime="{}Z">{}</time>', utc, shown)


@register.filter
def marked(text: Any) -> SafeString:
    """Text with each hidden control as a visible token, so that nothing can pass for something else."""
    pieces = _HIDDEN.split(str(text))
    return format_html_join("", "{}", ((piece,) for piece in _marks(pieces)))


@register.filter
def breakable(text: Any) -> SafeString:
    """Text that may go on in the next line after a sign, as addresses and ids need where no stylesheet of ours breaks them."""
    return format_html_join("", "{}<wbr>", ((piece,) for piece in _PIECES.findall(str(text))))


@register.filter
def visible(text: Any) -> str:
    """The same as plain text, for where no markup goes: options, titles, file names."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", str(text))


def _marks(pieces: list[str]) -> Iterator[str]:
    for index, piece in enumerate(pieces):
        if index % 2 == 0:
            yield conditional_escape(piece)
        else:
            code = f"U+{ord(piece):04X}"
            yield format_html(
                '<span class="hidden-mark" title="{}">{}</span>',
                unicodedata.name(piece, code),
                code,
            )


@register.simple_tag
def digest(value: str, label: str = "") -> str:
    """A hash: its first twelve digits, the whole behind a press. `value` has a `sha256:` before it or not."""
    digits = value.removeprefix("sha256:")
    return format_html(
        '<details class="digest"><summary>{}<code>{}</code></summary>'
        '<code class="whole" tabindex="0">{}</code></details>',
        format_html('<span class="visually-hidden">{} </span>', label) if label else "",
        digits[:12] + "…" if len(digits) > 12 else digits,
        digits,
    )


@register.simple_tag
def differing(one: str, other: str) -> str:
    """The first hash with the characters marked that differ from the other's, in runs."""
    runs: list[tuple[bool, str]] = []
    for index, character in enumerate(one):
        is_other = index >= len(other) or other[index] != character
        if runs and runs[-1][0] == is_other:
            runs[-1] = (is_other, runs[-1][1] + character)
        else:
            runs.append((is_other, character))
    return format_html_join(
        "",
        "{}",
        ((format_html("<mark>{}</mark>", text) if is_other else text,) for is_other, text in runs),
    )


@register.filter
def as_back(address: str | None) -> str:
    """The query by which a page knows the list that one came from."""
    return back_query(address)


@register.simple_tag(takes_context=True)
def list_url(context: Context, name: str) -> str:
    """A list as the reader left it."""
    url: str = context["visit"].list_url(name)
    return url


@register.filter
def role_words(role: str) -> str:
    return role_name(role)
