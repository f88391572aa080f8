"""Which languages the pages are offered in: English, and those that the installation has a catalogue for."""

from pathlib import Path

from django.conf import settings
from django.utils.translation import get_language_info, to_locale

SOURCE = "en"


def offered() -> list[tuple[str, str]]:
    """Code and name in the language itself. A catalogue is `<code>/LC_MESSAGES/django.mo` in a folder of `LOCALE_PATHS`."""
    codes = [code for code, _name in settings.LANGUAGES if code == SOURCE or _has_catalogue(code)]
    return [(code, str(get_language_info(code)["name_local"])) for code in codes]


def _has_catalogue(code: str) -> bool:
    place = Path(to_locale(code)) / "LC_MESSAGES" / "django.mo"
    return any((Path(folder) / place).is_file() for folder in settings.LOCALE_PATHS)
