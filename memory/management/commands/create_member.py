"""`create_member`: a person who may sign in to a tenant, and as what."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from memory.actions.create_member import ROLES, create_member
from memory.management.command import OperatorCommand, operator


class Command(OperatorCommand):
    """Make a user a member of a tenant."""

    help = (
        "Make a user a member of a tenant; the account is made when there is none for this address."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the tenant")
        parser.add_argument("email", help="also the account's user name")
        parser.add_argument("--role", required=True, choices=ROLES)
        parser.add_argument(
            "--subject",
            metavar="ID",
            help="the id that agents know this person by; needed for a person",
        )
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read the new account's password from one line of stdin",
        )

    def run(self, options: dict[str, Any]) -> None:
        password = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else None
        member = create_member(
            principal=operator(options["slug"]),
            email=options["email"],
            role=options["role"],
            subject=options["subject"],
            password=password,
        )
        answer: dict[str, Any] = {
            "memberId": str(member.id),
            "email": member.email,
            "role": member.role,
            "isNewUser": member.is_new_user,
        }
        if member.subject is not None:
            answer["subject"] = member.subject
        text = f"{member.email} is {member.role} of {options['slug']}."
        if member.is_new_user and password is None:
            text += f" To give it a password: python manage.py changepassword {member.email}"
        self.say(answer, text)
