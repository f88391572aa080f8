"""Sign checkpoints with a new key. Each tenant's log names the change in a leaf, under a checkpoint that both keys sign.

The old private key goes once every tenant's log names the new one; its public key stays, so old checkpoints still verify.
"""

from dataclasses import dataclass

from django.conf import settings

from memory.actions.seal_tenant import seal_tenant
from memory.errors import DomainError, InvariantViolated
from memory.integrity.bundle import key_id
from memory.integrity.signing import signer
from memory.tenancy import all_tenants

_OWN_SIGNER = "memory.integrity.signing.state_signer"


@dataclass(frozen=True, slots=True)
class Rotated:
    """`not_sealed`: slugs of tenants whose log was refused; the old private key stays for them until the command is run again."""

    old_key_id: str
    new_key_id: str
    not_sealed: tuple[str, ...]


def rotate_signing_key(*, finish_only: bool = False) -> Rotated:
    """Make a key and take it into use everywhere; `finish_only` goes on with a rotation that left tenants out.

    Raises InvariantViolated when the settings name another signer, which rotates its own keys.
    """
    if settings.KINDMEM_SIGNER != _OWN_SIGNER:
        raise InvariantViolated(invariant="signer-rotates-its-own-keys")
    old = signer().public_keys[0]
    if finish_only:
        old = next(iter(signer().public_keys[1:]), old)
    else:
        settings.KINDMEM_STATE.rotate_signing_key()
    refused: list[str] = []
    for tenant_id, slug in all_tenants():
        try:
            seal_tenant(tenant_id=tenant_id, tenant_slug=slug)
        except DomainError:
            refused.append(slug)
    if not refused:
        settings.KINDMEM_STATE.drop_previous_signing_seed()
    return Rotated(key_id(old), key_id(signer().public_keys[0]), tuple(refused))
