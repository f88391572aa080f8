"""The WSGI application that gunicorn serves (`gunicorn --config python:kindmem.web_server`)."""

import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")

application = get_wsgi_application()
# Django would load the routes, and with them most of the code, in every worker's first request.
import_module(settings.ROOT_URLCONF)
