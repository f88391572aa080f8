"""`rotate_keys`: a new token for an API key, or a new pepper under which the digests of new keys are made.

A new pepper changes no key that is there: their digests name the pepper they were made with.
"""

from typing import Any

from django.core.management.base import CommandParser

from memory import keys
from memory.actions.append_log_entries import append_governance
from memory.actions.rotate_key import MOST_OVERLAP_HOURS, rotate_key
from memory.instants import instant_text
from memory.management.command import OperatorCommand, Refused, operator
from memory.tenancy import all_tenants, tenant_context


class Command(OperatorCommand):
    """Rotate an API key, or the pepper."""

    help = (
        "Give an API key a successor with the same grants, and the old one an end; or, with --pepper, "
        "make a new secret for the digests of new keys."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", nargs="?", help="the tenant")
        parser.add_argument("prefix", nargs="?", help="the ten characters after kmk_ in the token")
        parser.add_argument(
            "--overlap-hours",
            type=int,
            default=24,
            metavar="H",
            help=f"how long the old token goes on working: 0 to {MOST_OVERLAP_HOURS}, default 24",
        )
        parser.add_argument("--pepper", action="store_true", help="rotate the pepper instead")

    def run(self, options: dict[str, Any]) -> None:
        slug, prefix = options["slug"], options["prefix"]
        if options["pepper"]:
            if slug is not None:
                raise Refused(
                    "--pepper is for the whole installation: name no tenant or key with it."
                )
            self._rotate_pepper()
        elif slug is None or prefix is None:
            raise Refused("Name a tenant and a key's prefix, or --pepper.")
        else:
            self._rotate_key(slug, prefix, options["overlap_hours"])

    def _rotate_key(self, slug: str, prefix: str, overlap_hours: int) -> None:
        key = rotate_key(principal=operator(slug), prefix=prefix, overlap_hours=overlap_hours)
        ends = f"goes on working for {overlap_hours} hours" if overlap_hours else "has ended"
        self.say(
            {"token": key.token, "prefix": key.prefix, "expiresAt": instant_text(key.expires_at)},
            f"{key.token}\n\nThis is shown once. It works until {instant_text(key.expires_at)}; "
            f"the old token {ends}.",
        )

    def _rotate_pepper(self) -> None:
        version = keys.add_pepper()
        for _, slug in all_tenants():
            principal = operator(slug)
            with tenant_context(principal.tenant_id):
                append_governance(
                    principal=principal, payload={"type": "pepper.rotated", "version": version}
                )
        self.say(
            {"pepperVersion": version},
            f"New keys are made with pepper {version}; those that are there go on working. "
            "Back up the state folder.",
        )
