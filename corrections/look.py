"""What every template knows: the reader's theme and language direction, the version, the request number."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import get_language, get_language_bidi

from corrections.addresses import address, came_from
from corrections.admin_pages import is_below_admin, pages_for
from corrections.navigation import links_of

THEMES = ("light", "dark")
THEME_COOKIE = "theme"
HTMX_CONFIG = (
    '{"history":"reload","noSwap":[204,304,"5xx"],"includeIndicatorCSS":false,"transitions":false}'
)


def look(request: HttpRequest) -> dict[str, Any]:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    visit = getattr(request, "visit", None)
    is_utc = request.GET.get("utc") == "1"
    has_zone = visit is not None and (is_utc or str(visit.zone) != "UTC")
    governs = visit is not None and visit.may("owner", "admin", "auditor")
    return {
        "theme": theme if theme in THEMES else "",
        "language": get_language() or "en",
        "direction": "rtl" if get_language_bidi() else "ltr",
        "htmx_config": HTMX_CONFIG,
        "product_version": settings.KINDMEM_VERSION,
        "request_id": getattr(request, "request_id", ""),
        "visit": visit,
        "back": came_from(request) if visit is not None else None,
        "is_utc": is_utc,
        "utc_url": address(request, utc=None if is_utc else 1) if governs and has_zone else None,
        "navigation": links_of(visit) if visit is not None else [],
        "admin_pages": pages_for(visit) if visit is not None and is_below_admin(visit) else [],
    }
