"""Decides how the database is reached: by a URL, or by the embedded cluster's socket."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from kindmem.postgres.cluster import Cluster

DATABASE_NAME = "kindmem"


def app_url(data_dir: Path) -> str:
    """The URL of the role that web and worker run as, on the embedded cluster."""
    return Cluster(data_dir).url("kindmem_app", DATABASE_NAME)


def owner_url(data_dir: Path) -> str:
    """The URL of the role that owns the schema and migrates it, on the embedded cluster."""
    return Cluster(data_dir).url("kindmem_owner", DATABASE_NAME)


def django_database(url: str) -> dict[str, Any]:
    """A Django DATABASES entry of a libpq URL; a `host` in its query (a socket folder) wins."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", None) or parts.hostname or "",
        "PORT": query.pop("port", None) or (str(parts.port) if parts.port else ""),
        "OPTIONS": query,
    }
