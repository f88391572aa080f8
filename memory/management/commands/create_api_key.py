"""`create_api_key`: a key for an agent, an app, an admin's script or an auditor. Its token is shown once."""

from typing import Any

from django.core.management.base import CommandParser

from memory.access import ABILITIES
from memory.actions.create_api_key import MOST_DAYS, ROLES, create_api_key
from memory.instants import instant_text
from memory.management.command import OperatorCommand, ids, operator

CONTAINERS = ("projects", "orgs", "users", "participants", "threads", "on_behalf_of")


class Command(OperatorCommand):
    """Make an API key."""

    help = "Make an API key. The token is printed once and kept nowhere."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("--name", required=True, help="letters, digits, '.', '_' and '-'")
        parser.add_argument("--role", required=True, choices=ROLES)
        parser.add_argument("--all", action="store_true", help="every container of the tenant")
        for kind in CONTAINERS:
            parser.add_argument(
                "--" + kind.replace("_", "-"),
                type=ids,
                default=[],
                metavar="A,B",
                help=_MEANS[kind],
            )
        parser.add_argument(
            "--may",
            type=ids,
            metavar="A,B",
            help=f"abilities, of {', '.join(ABILITIES)} (default: the role's, all but tenant-wide)",
        )
        parser.add_argument(
            "--expires-days",
            type=int,
            default=90,
            metavar="D",
            help=f"1 to {MOST_DAYS}, default 90",
        )

    def run(self, options: dict[str, Any]) -> None:
        key = create_api_key(
            principal=operator(options["slug"]),
            name=options["name"],
            role=options["role"],
            everything=options["all"],
            abilities=options["may"],
            expires_days=options["expires_days"],
            **{kind: options[kind] for kind in CONTAINERS},
        )
        self.say(
            {"token": key.token, "prefix": key.prefix, "expiresAt": instant_text(key.expires_at)},
            f"{key.token}\n\nThis is shown once. It works until {instant_text(key.expires_at)}; "
            f"to end it earlier: python manage.py revoke_api_key {options['slug']} {key.prefix}",
        )


_MEANS = {
    "projects": "projects whose facts and runs the key has",
    "orgs": "organisations whose facts, in no project, the key has",
    "users": "people whose own facts and records the key has",
    "participants": "participants of its projects that the key has",
    "threads": "threads that the key has",
    "on_behalf_of": "projects with every participant and thread in them",
}
