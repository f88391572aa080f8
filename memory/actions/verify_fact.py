"""Mark a fact as checked by a person with the right: the next revision with the same content, and its log entry.

Who may: a signed-in person or admin, an app or admin key, with the write guard. An agent never does. Nothing is destroyed, so a
held fact may be verified. The window of an unverified fact ends with it.
"""

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.errors import PermissionDenied
from memory.fact_head import fact_to_change, lock_fact
from memory.fact_rows import RevisionRow, insert_revision
from memory.fact_shape import FactView, SealedContent

_VERIFIERS = ("app", "admin", "owner", "person")


def verify_fact(
    *, principal: Principal, fact_id: str, expect_version: int | None = None
) -> FactView:
    """The verified revision. Raises FactNotFound, PermissionDenied, FactChanged."""
    seen, policy = fact_to_change(principal, fact_id)
    if principal.role not in _VERIFIERS:
        raise PermissionDenied(needs="a person, an app key or an admin key")
    replaced = lock_fact(principal, fact_id, expect_version=expect_version, seen=seen)
    fact = insert_revision(
        principal=principal,
        replaced=replaced,
        row=RevisionRow(
            content=SealedContent(
                replaced.content_text,
                replaced.content_hash,
                replaced.size_bytes,
                replaced.content_ref,
            ),
            retention=replaced.retention,
            source=replaced.source,
            keeps_freshness=True,
            keeps_wording=True,
            causes=replaced.cause_ids,
            subjects=replaced.subjects,
            valid_from=replaced.valid_from,
            valid_until=replaced.valid_until,
            observed_at=replaced.observed_at,
            trust="verified",
            verified_by=principal.writer,
            attributed_kind=replaced.attributed_kind,
            attributed_id=replaced.attributed_id,
            generated_run_id=replaced.generated_run_id,
        ),
        policy=policy,
    )
    append_governance(
        principal=principal,
        payload={"type": "fact.verified", "factId": fact.id, "version": fact.version},
    )
    return fact.beside(replaced)
