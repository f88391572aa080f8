"""Decides whether the keys in the state folder are the ones that this database was set up with.

The database holds one keyed digest of them. With other keys every API key would be unknown, every
seal look forged and every sealed copy stay shut, so nothing may run. A folder that lacks keys is
filled with new ones only where the database isn't in use.
"""

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import connections

_TEXT = b"kindmem: the keys of this installation"
_WAY_OUT = (
    "Name the right folder in KINDMEM_STATE_DIR, or put back the copy that was kept apart from the "
    "data; nothing was changed."
)


UNFINISHED_RESTORE = "restore-unfinished"
"""A file in the state folder while a restored database must not be served yet."""


class OtherKeys(RuntimeError):
    """The state folder isn't this database's; the message says which it is, and what to do."""


def check_keys(alias: str = "default") -> None:
    """Compare; neither keys nor row are written. `alias`: the connection that is asked.

    Raises OtherKeys.
    """
    stored = _stored_digest(alias)
    state = settings.KINDMEM_STATE
    if state.missing:
        # After the row: whoever wrote it had written every key before.
        state = _adopted(state.read_again())
    if state.missing and (stored is not None or _is_in_use(alias)):
        raise OtherKeys(
            f"The state folder {state.directory} is not the one that this database was set up with "
            f"(it has no {state.lack}). {_WAY_OUT}"
        )
    if stored is not None and not hmac.compare_digest(stored, _digest(state)):
        raise OtherKeys(
            f"The state folder {state.directory} is not the one that this database was set up with. "
            f"{_WAY_OUT}"
        )


def claim_keys(alias: str = "default") -> None:
    """Compare; then write down keys that are in memory alone, and the digest when there is none.

    Raises OtherKeys; StateError when the state folder can't be written.
    """
    check_keys(alias)
    _check_is_served()
    if settings.KINDMEM_STATE.missing:
        _adopted(settings.KINDMEM_STATE.kept())
    if not _has_table(alias) or _stored_digest(alias) is not None:
        return
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "INSERT INTO installation_keys (digest) VALUES (%s::bytea) ON CONFLICT DO NOTHING",
            [_digest(settings.KINDMEM_STATE)],
        )
    # Somebody else may have come first, with other keys.
    check_keys(alias)


_restoring: list[bool] = []
"""Not empty while this process is the restore itself."""


@contextmanager
def restoring() -> Iterator[None]:
    """What the restore calls may run on the database that it restores."""
    _restoring.append(True)
    try:
        yield
    finally:
        _restoring.pop()


def _check_is_served() -> None:
    """Raise OtherKeys while a restore is unfinished: what was erased may be back, and what is held may be free."""
    if not _restoring and (settings.KINDMEM_STATE.directory / UNFINISHED_RESTORE).exists():
        raise OtherKeys(
            "A restore is not finished, so nothing may run on this database yet. Run `python manage.py restore` with the same "
            "file again: it goes on where it was."
        )


def _adopted(state: Any) -> Any:
    """The state, which the settings have from now on."""
    if settings.KINDMEM_STATE.secret_key == settings.SECRET_KEY:
        settings.SECRET_KEY = state.secret_key
    settings.KINDMEM_STATE = state
    return state


def digest_text() -> str:
    """The keyed digest of this installation's keys, as a backup names it: 64 hex digits that tell nothing of them."""
    return _digest(settings.KINDMEM_STATE).hex()


def _digest(state: Any) -> bytes:
    return hmac.new(state.fingerprint_key, _TEXT, sha256).digest()


def _has_table(alias: str) -> bool:
    # A statement of its own: one that names a missing table is refused whole.
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT to_regclass('public.installation_keys') IS NOT NULL")
        return bool(cursor.fetchone()[0])


def _stored_digest(alias: str) -> bytes | None:
    if not _has_table(alias):
        return None
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT digest FROM installation_keys")
        row = cursor.fetchone()
    return None if row is None else bytes(row[0])


def _is_in_use(alias: str) -> bool:
    """Whether there ever was a tenant: what it holds rests on keys, also where no digest was written.

    The owner of the tables can't read tenants either, so it is their table's size that tells.
    """
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT coalesce(pg_relation_size(to_regclass('public.tenant')), 0) > 0")
        return bool(cursor.fetchone()[0])
