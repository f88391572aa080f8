"""What an erasure does to log entries: their payloads go by the one action that attests it where the verifiers look.

Everything else of an entry is hashed and stays, and so do the ids in its scope: how many is counted and said. The attestations
write the erased id no second time.
"""

from collections.abc import Sequence

from memory.access import Principal
from memory.actions.erase_payloads import erase_payloads
from memory.erasure.ledger import ErasureView, pseudonym
from memory.log_pseudonyms import pseudonym as log_pseudonym

REASON_CODE = "erasure"


def clear_entries(principal: Principal, erasure: ErasureView, entry_ids: Sequence[str]) -> int:
    """Clear these entries' payloads in the caller's transaction; how many had one."""
    selector, hidden = erasure.selector_id, {}
    if selector:
        erased = pseudonym(principal.tenant_id, selector)
        hidden = {selector: erased, log_pseudonym(principal.tenant_id, selector): erased}
    effect = erase_payloads(
        principal=principal,
        entry_ids=entry_ids,
        reason_code=REASON_CODE,
        hidden=hidden,
    )
    return effect.still_provable + effect.linkage_only
