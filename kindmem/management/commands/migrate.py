"""Django's `migrate`, as the role that owns the schema, one run at a time."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections

from memory.installation_keys import OtherKeys, check_keys, claim_keys

# Any number that nothing else locks.
_LOCK_KEY = 0x6D696772617465  # "migrate"


class Command(migrate.Command):
    """`--database` is `owner` unless said otherwise; two runs at once wait for each other."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

    def handle(self, *args: Any, **options: Any) -> None:
        with connections[options["database"]].cursor() as cursor:
            # The other run may be long; what must not wait long is a lock on a table.
            cursor.execute("SET lock_timeout = 0")
            cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK_KEY])
            cursor.execute("SET lock_timeout = DEFAULT")
            try:
                check_keys(options["database"])
                super().handle(*args, **options)
                claim_keys(options["database"])
            except OtherKeys as error:
                raise CommandError(str(error)) from error
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK_KEY])
