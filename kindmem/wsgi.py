"""The WSGI application that gunicorn serves (`gunicorn --config python:kindmem.web_server`)."""

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from kindmem.middleware import NOT_TEXT, is_text

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")

_django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Django, told of what it would not see itself: bytes in an address that are no text."""
    if not is_text(environ):
        environ[NOT_TEXT] = True
    return _django(environ, start_response)


# Django would load the routes, and with them most of the code, in every worker's first request.
import_module(settings.ROOT_URLCONF)
