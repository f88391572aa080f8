"""Drop leaves past the last signed head that this server would not have made, so that the log can be sealed again.

Nothing that was ever signed or anchored goes, and what honest leaves among them covered is sealed anew. The table takes no
deletion from the product, nor from its owner while its trigger is on: the operator's command acts as the owner, for this alone.
"""

from django.db import connection, connections, transaction

from memory.access import Principal
from memory.actions.append_log_entries import append_governance
from memory.actions.seal_tenant import seal_tenant
from memory.integrity.anchors import read_newest_anchor
from memory.integrity.checkpoints import stored_checkpoints
from memory.integrity.signing import signer
from memory.integrity.unsigned import first_forged
from memory.tenancy import SET_TENANT, tenant_context

_DROP = """
DELETE FROM seal_leaf l WHERE l.tenant_id = %(tenant)s::uuid AND l.leaf_index >= %(first)s::bigint
  AND NOT EXISTS (SELECT FROM checkpoint c WHERE c.tenant_id = l.tenant_id AND c.size > %(first)s::bigint)
"""


def drop_unsigned_leaves(*, principal: Principal) -> int:
    """How many leaves went; none when each would be made now. Opens its own transactions and seals; call it outside any.

    Raises PermissionDenied; SealRefused when something else is wrong with the log of seals, too.
    """
    principal.needs_role("admin", "owner")
    tenant_id, slug = principal.tenant_id, principal.tenant_slug
    with tenant_context(tenant_id), connection.cursor() as cursor:
        rows = stored_checkpoints(cursor, tenant_id, limit=1)
        covered = max(read_newest_anchor(slug).reaches, rows[0].size if rows else 0)
        forged = first_forged(cursor, tenant_id, slug, covered, None, signer().public_keys)
    if forged is None:
        return 0
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute(SET_TENANT, [str(tenant_id)])
        cursor.execute("ALTER TABLE seal_leaf DISABLE TRIGGER seal_leaf_append_only")
        cursor.execute(_DROP, {"tenant": tenant_id, "first": forged.index})
        dropped = cursor.rowcount
        cursor.execute("ALTER TABLE seal_leaf ENABLE TRIGGER seal_leaf_append_only")
    with tenant_context(tenant_id):
        append_governance(
            principal=principal,
            payload={"type": "seal.leaves-dropped", "from": forged.index, "leaves": dropped},
        )
    seal_tenant(tenant_id=tenant_id, tenant_slug=slug)
    return dropped
