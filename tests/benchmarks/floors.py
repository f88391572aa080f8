"""The floor of a request: the SQL statements that the product ran for one just like it, run again as they stand.

A request is sent in process within a transaction that is rolled back, and what it asked of the database is kept. The web server
then runs those statements, and commits, behind the same key look-up: bare, as a WSGI function with psycopg and nothing else, or
behind the product's own door (its middleware, its handling of a request). A statement that changed rows must change some again.
"""

import hmac
import os
import pickle
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

VARIABLE = "BENCH_RECORDINGS"
"""Names the file with the recordings, for the web server's processes."""
BARE = "/floor/"
Statement = tuple[Any, Any, bool]
"""SQL, its parameters, and whether it changed rows."""
Recordings = dict[str, list[list[Statement]]]
_NOT_THE_WORK = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")


def recorded(client: Any, method: str, path: str, body: Any) -> list[Statement]:
    """What this request runs after its caller is known; nothing of it stays."""
    from django.db import connection, transaction

    asked: list[Statement] = []

    def keep(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if many:
            raise RuntimeError("executemany is not recorded")
        cursor, text = context["cursor"], str(sql).lstrip()
        if "auth_lookup(" in text:
            asked.clear()  # the floor looks the key up itself
        elif not text.startswith(_NOT_THE_WORK) and "last_used_at" not in text:
            asked.append((sql, params, _changes(text) and cursor.rowcount > 0))
        return result

    with transaction.atomic():
        with connection.execute_wrapper(keep):
            answer = client.request(method, path, body)
        if answer.status_code >= 300:
            raise RuntimeError(answer.content)
        transaction.set_rollback(True)
    return asked


def _changes(text: str) -> bool:
    return any(word in text for word in ("INSERT INTO", "UPDATE ", "DELETE FROM"))


def save(path: Path, recordings: Recordings) -> None:
    path.write_bytes(pickle.dumps(recordings))
    os.environ[VARIABLE] = str(path)


@cache
def _saved() -> Recordings:
    found: Recordings = pickle.loads(Path(os.environ[VARIABLE]).read_bytes())
    return found


def replay(cursor: Any, kind: str, number: int) -> None:
    """Run the statements of one recording; the transaction is the caller's."""
    of_kind = _saved()[kind]
    for sql, params, changed in of_kind[number % len(of_kind)]:
        cursor.execute(sql, params)
        if cursor.description:
            cursor.fetchall()
        if changed and cursor.rowcount < 1:
            raise RuntimeError(f"{kind}: what changed rows when it was recorded changes none now")


def bare(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """`/floor/<kind>/<number>` without Django but for its connection: key look-up, statements, commit."""
    from django.db import connection

    from memory import keys
    from memory.api.authentication import _LOOK_UP

    kind, number = environ["PATH_INFO"].removeprefix(BARE).split("/")
    token = environ["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    connection.ensure_connection()
    database: Any = connection.connection
    with database.transaction(), database.cursor() as cursor:
        cursor.execute(_LOOK_UP, {"prefix": keys.prefix_of(token), "lock": None})
        row = cursor.fetchone()
        if not hmac.compare_digest(keys.digest(token, row[8]), bytes(row[7])):
            raise RuntimeError("not the key")
        replay(cursor, kind, int(number))
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", "2")])
    return [b"{}"]


def with_floors(product: Any) -> Any:
    """The product's WSGI application, with the bare floors beside it."""

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(BARE):
            return bare(environ, start_response)
        answer: Iterable[bytes] = product(environ, start_response)
        return answer

    return application


def numbered(kind: str, numbers: Sequence[int], *, is_bare: bool) -> list[tuple[str, str, Any]]:
    """The requests that ask for these recordings."""
    start = BARE if is_bare else "/bench/floor/"
    return [("POST", f"{start}{kind}/{number}", None) for number in numbers]
