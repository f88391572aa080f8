"""The approximate index over the vectors of one large tenant and model: its name, whether it is there, building and dropping it.

Kept up to date on each write, such an index takes most of the time of a write, and comparing every vector is faster for all but
the largest tenants. So it is partial, built by the worker for a tenant that has outgrown the exact search, and no other tenant's
vectors are in it. Building needs the schema's owner; what searches ask is in the catalog.
"""

import hashlib
import threading
import time
from uuid import UUID

from django.db import connection, connections
from psycopg import sql

WORTH_FROM = 50_000
"""Vectors of one tenant and model from which an index pays; up to 20,000 visible ones the search stays exact anyway."""

_KNOWN_SECONDS = 60.0
_lock = threading.Lock()
_known: dict[tuple[str, str], tuple[float, bool]] = {}

_IS_VALID = """
SELECT EXISTS (
  SELECT FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
  WHERE c.relname = %(name)s::text AND i.indisvalid AND i.indrelid = 'fact_embedding'::regclass
)
"""


def index_name(tenant_id: UUID, model: str) -> str:
    digest = hashlib.blake2b(f"{tenant_id} {model}".encode(), digest_size=8).hexdigest()
    return f"fact_embedding_near_{digest}"


def has_vector_index(tenant_id: UUID, model: str) -> bool:
    """Whether the index is there and complete; what was found is believed for a minute."""
    name = index_name(tenant_id, model)
    key = (str(connection.settings_dict["NAME"]), name)
    now = time.monotonic()
    with _lock:
        at, found = _known.get(key, (-_KNOWN_SECONDS, False))
    if now - at < _KNOWN_SECONDS:
        return found
    with connection.cursor() as cursor:
        cursor.execute(_IS_VALID, {"name": name})
        is_there = bool(cursor.fetchone()[0])
    with _lock:
        _known[key] = (now, is_there)
    return is_there


def build_vector_index(tenant_id: UUID, model: str, dims: int) -> None:
    """Build the index beside running writes. Not for within a transaction; one that failed half-way is built anew."""
    name = index_name(tenant_id, model)
    with connections["owner"].cursor() as cursor:
        cursor.execute(_IS_VALID, {"name": name})
        if cursor.fetchone()[0]:
            return
        cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))
        cursor.execute(
            sql.SQL(
                "CREATE INDEX CONCURRENTLY {name} ON fact_embedding USING hnsw ((embedding::halfvec({dims})) halfvec_cosine_ops) "
                "WHERE tenant_id = {tenant}::uuid AND model = {model}::text"
            ).format(
                name=sql.Identifier(name),
                dims=sql.Literal(dims),
                tenant=sql.Literal(str(tenant_id)),
                model=sql.Literal(model),
            )
        )
    _forget(name)


def drop_vector_index(tenant_id: UUID, model: str) -> None:
    """Drop the index, if it is there. Searches go on, exactly."""
    name = index_name(tenant_id, model)
    with connections["owner"].cursor() as cursor:
        cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))
    _forget(name)


def _forget(name: str) -> None:
    with _lock:
        for key in [key for key in _known if key[1] == name]:
            del _known[key]
