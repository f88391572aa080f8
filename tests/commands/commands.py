"""Calls an operator command in process and gives back what it said."""

import io
import json
from typing import Any

from django.core.management import call_command


def told(command: str, *arguments: str) -> str:
    """What the command wrote to stdout. Raises CommandError."""
    stdout = io.StringIO()
    call_command(command, *arguments, stdout=stdout, stderr=io.StringIO())
    return stdout.getvalue()


def answered(command: str, *arguments: str) -> Any:
    """The one JSON value that the command wrote with `--json`."""
    return json.loads(told(command, *arguments, "--json"))
