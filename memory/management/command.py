"""What every operator command shares: `--json`, one clear message and a non-zero exit when it fails, and how progress is shown.

The answer goes to stdout, everything else to stderr. On a terminal progress is one line that is drawn again; elsewhere it is
JSON lines, a few seconds apart. `--data-dir` is taken by manage.py before settings load, and only named here for `--help`.
"""

import json
import sys
import time
from typing import Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from memory.access import LogIds, Principal, system_principal
from memory.actions.note_damage import note_damage
from memory.errors import BadInput, DomainError, NotFound, RunDamaged, TenantClosed
from memory.installation_keys import OtherKeys, claim_keys
from memory.models import Tenant
from memory.tenancy import tenant_context, tenant_id_of

_SECONDS_BETWEEN_LINES = 2.0
_SECONDS_BETWEEN_DRAWINGS = 0.1


class Refused(CommandError):
    """The command ends here. `code`: the rule's, for those who read JSON."""

    def __init__(self, message: str, *, code: str = "refused", details: Any = None) -> None:
        super().__init__(message, returncode=1)
        self.code = code
        self.details = details

    def as_json(self) -> str:
        """`{"error": {"code", "message", "details"}}`, in one line."""
        said = {"code": self.code, "message": str(self), "details": self.details or {}}
        return json.dumps({"error": said}, ensure_ascii=False)


class ToldCommand(BaseCommand):
    """A command that says why it refuses in one sentence, or with `--json` in one JSON value."""

    requires_system_checks = ()
    _called_from_command_line: bool  # Django's; the stubs don't know it

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="answer in one JSON value")
        parser.add_argument("--data-dir", metavar="DIR", help="where the embedded database lives")
        self.arguments(parser)

    def arguments(self, parser: CommandParser) -> None:
        """Add the command's own arguments."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if not self._called_from_command_line or options["traceback"]:
                raise
            refused = error if isinstance(error, Refused) else Refused(str(error))
            self.stderr.write(refused.as_json() if options["json"] else str(error))
            sys.exit(error.returncode)


class OperatorCommand(ToldCommand):
    """A command of the operator; subclasses give `arguments` and `run`."""

    needs_database = True

    def run(self, options: dict[str, Any]) -> None:
        """Do it; answer with `say`. DomainErrors become a message and exit 1."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        self.is_json: bool = options["json"]
        self.progress = Progress(self.stderr)
        try:
            if self.needs_database:
                claim_keys()
            self.run(options)
        except OtherKeys as error:
            raise Refused(str(error), code="other-keys") from error
        except DomainError as error:
            if isinstance(error, RunDamaged):
                note_damage(error)
            raise Refused(sentence(error), code=error.code, details=error.details) from error
        except OperationalError as error:
            raise Refused(
                f"The database can't do this now: {error}".strip(), code="unavailable"
            ) from error
        except OSError as error:
            raise Refused(f"{error.strerror or error}: {error.filename}") from error
        finally:
            self.progress.end()

    def say(self, answer: Any, text: str) -> None:
        """The command's answer: `answer` with `--json`, `text` without."""
        self.stdout.write(json.dumps(answer, ensure_ascii=False) if self.is_json else text)


class Progress:
    """How far a long command is."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._is_terminal = bool(stream.isatty())
        # What ends soon says nothing of progress, unless somebody is watching.
        self._next_at = 0.0 if self._is_terminal else time.monotonic() + _SECONDS_BETWEEN_LINES
        self._is_drawn = False

    def show(self, text: str, **counts: int) -> None:
        """`text` on a terminal, `counts` as JSON elsewhere; more often than needed does no harm."""
        now = time.monotonic()
        if now < self._next_at:
            return
        if self._is_terminal:
            self._next_at = now + _SECONDS_BETWEEN_DRAWINGS
            self._stream.write(f"\r\x1b[K{text}", ending="")
            self._stream.flush()
            self._is_drawn = True
        else:
            self._next_at = now + _SECONDS_BETWEEN_LINES
            self._stream.write(json.dumps({"progress": counts}))

    def end(self) -> None:
        """Clear what was drawn, so that the answer stands alone."""
        if self._is_drawn:
            self._stream.write("\r\x1b[K", ending="")
            self._is_drawn = False


def operator(slug: str) -> Principal:
    """Whoever runs commands, in the tenant of this slug. Raises Refused when there is no such tenant; TenantClosed."""
    try:
        tenant_id = tenant_id_of(slug)
    except NotFound:
        raise Refused(
            f"There is no tenant '{slug}'. Make it with: python manage.py create_tenant {slug}",
            code="not-found",
        ) from None
    with tenant_context(tenant_id):
        tenant = Tenant.objects.get(id=tenant_id)
    if tenant.closed_at is not None:
        raise TenantClosed
    return system_principal(
        tenant_id,
        slug,
        time_zone=tenant.time_zone,
        search_language=tenant.search_language,
        hash_version=tenant.hash_version,
        log_ids=cast(LogIds, tenant.log_ids),
    )


def sentence(error: DomainError, *, of_file: bool = False) -> str:
    """What the error says to a person at a terminal: bad input names each place, as an option or as the file spells it."""
    if isinstance(error, BadInput):
        named_as = _member if of_file else _option
        places = (f"{named_as(one['path'])} {one['message']}".strip() for one in error.issues)
        return "; ".join(place.rstrip(".") for place in places) + "."
    named = ", ".join(f"{name} {value}" for name, value in error.details.items() if value != "")
    return f"{error} ({named})" if named else str(error)


def _option(path: str) -> str:
    return path.lstrip("/").replace("_", "-")


def _member(path: str) -> str:
    return path.lstrip("/")


def ids(text: str) -> list[str]:
    """A comma-separated list of ids, as an argument gives it."""
    return [one.strip() for one in text.split(",") if one.strip()]
