"""What an erasure clears besides facts, records and the log: kept answers, members, keys, pages, and scopes of released holds."""

import json
from typing import Any
from uuid import UUID

from django.db import connection

from memory.access import Principal
from memory.canonical import canonical
from memory.erasure.ledger import PERSON_KINDS, ErasureView, pseudonym
from memory.log_pseudonyms import pseudonym as log_pseudonym

_WITHHOLD = """
UPDATE idempotency_key SET answer = NULL, scopes_text = NULL, withheld_at = coalesce(withheld_at, clock_timestamp())
WHERE tenant_id = %(tenant)s::uuid AND (answer IS NOT NULL OR scopes_text IS NOT NULL)
  AND (position(%(quoted)s::text IN coalesce(answer, '')) > 0 OR position(%(quoted)s::text IN coalesce(scopes_text, '')) > 0)
  AND (%(before)s::timestamptz IS NULL OR created_at < %(before)s::timestamptz)
"""
# Keys of retries as they were before they were kept as keyed digests.
_PLAIN_KEYS = """
UPDATE idempotency_key SET key = %(hidden)s::text || ':' || id::text
WHERE tenant_id = %(tenant)s::uuid AND position(%(selector)s::text IN key) > 0
"""
_MEMBERS = """
UPDATE member SET subject_id = CASE WHEN role = 'person' THEN %(hidden)s::text END,
       left_at = CASE WHEN role = 'person' THEN coalesce(left_at, clock_timestamp()) ELSE left_at END
WHERE tenant_id = %(tenant)s::uuid AND subject_id = %(selector)s::text
  AND (%(before)s::timestamptz IS NULL OR created_at < %(before)s::timestamptz)
"""
_KEYS = """
UPDATE api_key SET users = array_remove(users, %(selector)s::text), participants = array_remove(participants, %(selector)s::text)
WHERE tenant_id = %(tenant)s::uuid AND (%(selector)s::text = ANY(users) OR %(selector)s::text = ANY(participants))
  AND (%(before)s::timestamptz IS NULL OR created_at < %(before)s::timestamptz)
"""
# The pages' own: links that open somebody's pages, and keys of forms that were sent through one.
_PAGE_LINKS = """
DELETE FROM page_link WHERE tenant_id = %(tenant)s::uuid AND subject_id = %(selector)s::text
  AND (%(before)s::timestamptz IS NULL OR made_at < %(before)s::timestamptz)
"""
_PAGE_FORMS = """
DELETE FROM page_form WHERE tenant_id = %(tenant)s::uuid AND sender = 'user:' || %(selector)s::text
  AND (%(before)s::timestamptz IS NULL OR sent_at < %(before)s::timestamptz)
"""
# Members go by a number of ours, which may be somebody's id.
_REFUSALS = """
UPDATE hold_refusal SET asked_by = 'user:' || %(hidden)s::text
WHERE tenant_id = %(tenant)s::uuid AND asked_by = 'user:' || %(selector)s::text
  AND (%(before)s::timestamptz IS NULL OR asked_at < %(before)s::timestamptz)
  AND NOT EXISTS (SELECT FROM member b WHERE b.tenant_id = %(tenant)s::uuid AND b.user_id::text = %(selector)s::text)
"""
_RELEASED = """
SELECT id, scope_text, subject_ids FROM legal_hold
WHERE tenant_id = %(tenant)s::uuid AND released_at IS NOT NULL AND position(%(quoted)s::text IN scope_text) > 0
  AND (%(before)s::timestamptz IS NULL OR placed_at < %(before)s::timestamptz)
ORDER BY id FOR UPDATE
"""
_HIDE_SCOPE = """
UPDATE legal_hold SET scope_text = %(scope)s::text, subject_ids = %(subjects)s::text[]
WHERE tenant_id = %(tenant)s::uuid AND id = %(id)s::uuid
"""
Counts = dict[str, int]


def clear_rest(principal: Principal, erasure: ErasureView) -> Counts:
    """Kept answers, scopes of released holds, and for a person the rows of members, keys and pages that name them."""
    selector = erasure.selector_id or ""
    parameters: dict[str, Any] = {
        "tenant": principal.tenant_id,
        "selector": selector,
        "quoted": canonical(selector),
        "hidden": pseudonym(principal.tenant_id, selector),
        "before": erasure.reaches_before,
    }
    statements = {"idempotencyAnswers": _WITHHOLD}
    if erasure.kind in PERSON_KINDS:
        statements |= {
            "members": _MEMBERS,
            "keys": _KEYS,
            "pageLinks": _PAGE_LINKS,
            "pageForms": _PAGE_FORMS,
            "holdRefusals": _REFUSALS,
        }
    counts: Counts = {}
    with connection.cursor() as cursor:
        for store, statement in statements.items():
            cursor.execute(statement, parameters)
            if cursor.rowcount:
                counts[store] = cursor.rowcount
        cursor.execute(_PLAIN_KEYS, parameters)
    if hidden := _hide_in_scopes(principal.tenant_id, selector, parameters):
        counts["holdScopes"] = hidden
    return counts


def _hide_in_scopes(tenant_id: UUID, selector: str, parameters: dict[str, Any]) -> int:
    """Put a keyed hash where a released hold named them; how many holds did. One in force needs its scope."""
    stands_for = {
        selector: parameters["hidden"],
        log_pseudonym(tenant_id, selector): parameters["hidden"],
    }
    with connection.cursor() as cursor:
        cursor.execute(_RELEASED, parameters)
        rows = cursor.fetchall()
        for hold_id, scope_text, subjects in rows:
            scope = {
                name: [stands_for.get(one, one) for one in named]
                if isinstance(named, list)
                else named
                for name, named in json.loads(scope_text).items()
            }
            cursor.execute(
                _HIDE_SCOPE,
                {
                    "tenant": tenant_id,
                    "id": hold_id,
                    "scope": canonical(scope),
                    "subjects": [stands_for.get(one, one) for one in subjects],
                },
            )
    return len(rows)
