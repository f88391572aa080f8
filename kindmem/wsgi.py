"""The WSGI application that gunicorn serves (`gunicorn --config python:kindmem.web_server`)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kindmem.settings")

application = get_wsgi_application()
