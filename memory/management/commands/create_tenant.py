"""`create_tenant`: a new outer wall, with nobody and nothing inside."""

from typing import Any

from django.core.management.base import CommandParser

from memory.actions.create_tenant import create_tenant
from memory.management.command import OperatorCommand
from memory.search.analysis import LANGUAGES


class Command(OperatorCommand):
    """Make a tenant."""

    help = "Make a tenant."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="how the tenant is named in URLs, scopes and commands")
        parser.add_argument("--name", help="how people read it (default: the slug)")
        parser.add_argument("--time-zone", default="UTC", help="IANA name, such as Europe/Berlin")
        parser.add_argument("--search-language", default="english", choices=LANGUAGES)

    def run(self, options: dict[str, Any]) -> None:
        slug = options["slug"]
        tenant_id = create_tenant(
            slug=slug,
            name=options["name"],
            time_zone=options["time_zone"],
            search_language=options["search_language"],
        )
        name = options["name"] or slug
        self.say({"id": str(tenant_id), "slug": slug, "name": name}, f"Made the tenant {slug}.")
