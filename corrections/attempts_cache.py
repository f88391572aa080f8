"""A small cache in the database, so that sign-in attempts are counted across all web workers.

Values are JSON, not pickles: whoever can write to the database must not thereby run code in the web server.
"""

import json
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection

_ENDS = "CASE WHEN %(seconds)s::float8 IS NULL THEN 'infinity' ELSE now() + %(seconds)s::float8 * interval '1 second' END"


class AttemptsCache(BaseCache):
    """Django's cache interface over one table; `table` is its name."""

    def __init__(self, table: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._table = connection.ops.quote_name(table)

    def _key(self, key: str, version: int | None) -> str:
        return self.make_and_validate_key(key, version=version)

    def _seconds(self, timeout: Any) -> float | None:
        chosen = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return None if chosen is None else max(0.0, float(chosen))

    def _run(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else [()] * cursor.rowcount

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        found = self._run(
            f"SELECT value FROM {self._table} WHERE key = %(key)s::text AND expires_at > now()",
            {"key": self._key(key, version)},
        )
        return json.loads(found[0][0]) if found else default

    def _write(self, key: str, value: Any, timeout: Any, version: int | None, when: str) -> bool:
        given = {
            "key": self._key(key, version),
            "value": json.dumps(value),
            "seconds": self._seconds(timeout),
        }
        rows = self._run(
            f"INSERT INTO {self._table} AS c (key, value, expires_at) VALUES (%(key)s::text, %(value)s::text, {_ENDS}) "
            f"ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at {when} RETURNING 1",
            given,
        )
        return bool(rows)

    def set(
        self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        self._write(key, value, timeout, version, "")

    def add(
        self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        # The moment to clear up: only sign-in attempts add keys, and there are few of those.
        self._run(f"DELETE FROM {self._table} WHERE expires_at <= now()", {})
        return self._write(key, value, timeout, version, "WHERE c.expires_at <= now()")

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        rows = self._run(
            f"UPDATE {self._table} SET expires_at = {_ENDS} WHERE key = %(key)s::text AND expires_at > now() RETURNING 1",
            {"key": self._key(key, version), "seconds": self._seconds(timeout)},
        )
        return bool(rows)

    def delete(self, key: str, version: int | None = None) -> bool:
        rows = self._run(
            f"DELETE FROM {self._table} WHERE key = %(key)s::text RETURNING 1",
            {"key": self._key(key, version)},
        )
        return bool(rows)

    def clear(self) -> None:
        self._run(f"DELETE FROM {self._table}", {})
