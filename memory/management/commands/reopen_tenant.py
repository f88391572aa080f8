"""`reopen_tenant`: a closed tenant is used again."""

from typing import Any

from django.core.management.base import CommandParser

from memory.access import system_principal
from memory.actions.close_tenant import reopen_tenant
from memory.errors import NotFound
from memory.management.command import OperatorCommand, Refused
from memory.models import Tenant
from memory.tenancy import tenant_context, tenant_id_of


class Command(OperatorCommand):
    """Open a tenant again that its owner closed."""

    help = "Open a tenant again that its owner closed; its keys and members come in as before."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")

    def run(self, options: dict[str, Any]) -> None:
        slug = options["slug"]
        try:
            tenant_id = tenant_id_of(slug)
        except NotFound:
            raise Refused(f"There is no tenant '{slug}'.", code="not-found") from None
        with tenant_context(tenant_id):
            tenant = Tenant.objects.select_for_update().get(id=tenant_id)
            if tenant.closed_at is None:
                raise Refused(f"The tenant '{slug}' is open.", code="open")
            reopen_tenant(
                principal=system_principal(tenant_id, slug, hash_version=tenant.hash_version)
            )
        self.say({"tenant": slug}, f"{slug} is open again; its keys and members come in as before.")
