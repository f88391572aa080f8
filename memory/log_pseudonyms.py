"""How people are named in the run log of a tenant that hides them there: by a keyed hash, from the start.

The log is hashed, so that an id in an entry's scope or actor can't be taken away later: an erasure leaves it. With the tenant's
setting `pseudonymiseLogIds` what is stored is a pseudonym, made with a key outside the database. Whoever asks by the id finds
entries by both. A pseudonym has three parts, one for each kind of person that an erasure can name; each follows from the keyed
hash that the ledger of erasures keeps, so that a replay after a restore finds a person whose id is nowhere else.
"""

import dataclasses
import hmac
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from memory.access import Principal, Scope
from memory.erasure.ledger import PERSON_KINDS, selector_digest
from memory.log_entry import NewEntry

PREFIX: Final = "pseudonym:"
_PART: Final = 16
_LENGTH: Final = len(PREFIX) + _PART * len(PERSON_KINDS)
_PERSONS: Final = ("userId", "participantId")
_ACTS_AS: Final = ("user:", "participant:")


def part_of(digest: bytes) -> str:
    """What of a pseudonym follows from the ledger's keyed hash of a person, of one kind."""
    return hmac.new(digest, b"kindmem log pseudonym 1", sha256).hexdigest()[:_PART]


def pseudonym(tenant_id: UUID, subject_id: str) -> str:
    """The name that the log has for a person; of a pseudonym, itself."""
    if is_pseudonym(subject_id):
        return subject_id
    parts = (part_of(selector_digest(tenant_id, kind, subject_id)) for kind in PERSON_KINDS)
    return PREFIX + "".join(parts)


def is_pseudonym(text: str) -> bool:
    return text.startswith(PREFIX) and len(text) == _LENGTH


def is_of(pseudonym: str, kind: str, digest: bytes) -> bool:
    """Whether a pseudonym is of the person whom the ledger has by this kind and keyed hash."""
    first = len(PREFIX) + _PART * PERSON_KINDS.index(kind)
    return hmac.compare_digest(pseudonym[first : first + _PART], part_of(digest))


def with_pseudonyms(tenant_id: UUID, subject_ids: Iterable[str]) -> list[str]:
    """The ids, and what the log may have in their place."""
    ids = list(subject_ids)
    return [*ids, *(pseudonym(tenant_id, one) for one in ids)]


def entry_to_store(principal: Principal, entry: NewEntry) -> NewEntry:
    """The entry with pseudonyms where the tenant wants them; else as it is."""
    if principal.log_ids != "pseudonyms":
        return entry
    hidden = {
        name: pseudonym(principal.tenant_id, value) if name in _PERSONS else value
        for name, value in entry.scope.items()
    }
    return dataclasses.replace(
        entry, scope=hidden, actor=_actor(principal, entry.actor, entry.scope)
    )


def writer_to_store(principal: Principal) -> str:
    """Who wrote an entry, outside of its hash. A person on a page link is named by their own id, anybody else is not."""
    if principal.log_ids == "pseudonyms" and principal.kind == "link":
        return f"user:{pseudonym(principal.tenant_id, principal.id)}"
    return principal.writer


def actors_to_find(principal: Principal, actor: str) -> list[str]:
    """An actor as asked for, and as the log may have it."""
    if principal.log_ids == "plain":
        return [actor]
    return [actor, *(_hidden(principal.tenant_id, actor, prefix) for prefix in ("", *_ACTS_AS))]


def guard_parameters(principal: Principal, parameters: dict[str, Any]) -> dict[str, Any]:
    """The read guard's parameters, for a log that may name people by pseudonyms."""
    if principal.log_ids == "plain":
        return parameters
    named = ("g_users", "g_participants", "g_subject")
    more = {
        name: with_pseudonyms(principal.tenant_id, parameters[name])
        for name in named
        if name in parameters
    }
    return {**parameters, **more}


def _actor(principal: Principal, actor: str | None, scope: Scope) -> str | None:
    """Hidden where it names a person: as the scope does, or as `user:` or `participant:`. Members go by a number of ours."""
    if actor is None or (actor == principal.writer and principal.kind == "member"):
        return actor
    if actor in (scope.get(name) for name in _PERSONS):
        return pseudonym(principal.tenant_id, actor)
    for prefix in _ACTS_AS:
        if actor.startswith(prefix) and len(actor) > len(prefix):
            return _hidden(principal.tenant_id, actor, prefix)
    return actor


def _hidden(tenant_id: UUID, actor: str, prefix: str) -> str:
    return prefix + pseudonym(tenant_id, actor.removeprefix(prefix))
