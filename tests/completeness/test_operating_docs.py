"""What an operator can call and set is in the documents: every command with its options, every variable that is read."""

import ast
import re

import pytest
from django.core.management import get_commands, load_command_class

from tests.completeness.sources import PRODUCT, ROOT, files, name_of, nodes

_COMMANDS_PAGE = (ROOT / "docs" / "operator-commands.md").read_text("utf-8")
_SETTINGS_PAGE = (ROOT / "docs" / "operate.md").read_text("utf-8")
OURS = sorted(name for name, app in get_commands().items() if app in PRODUCT)
_SAID_FOR_ALL = {"--json", "--data-dir"}
_READS = {"str", "bool", "int", "list", "get", "getenv"}
"""Last names of what reads a variable: `env.str`, `os.environ.get`, `environ.setdefault` is none."""


def options(name: str) -> set[str]:
    """The long options that the command adds to Django's."""
    command = load_command_class(get_commands()[name], name)
    parser = command.create_parser("manage.py", name)
    own = [action for action in parser._actions if action.option_strings]
    bare = {
        *("--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback"),
        *("--no-color", "--force-color", "--skip-checks"),
    }
    return {option for action in own for option in action.option_strings if option[:2] == "--"} - (
        bare | _SAID_FOR_ALL
    )


def variables() -> dict[str, str]:
    """Each variable of ours that the product reads from the environment → where."""
    found = {}
    for path in (*files(".py"), ROOT / "manage.py"):
        for node in nodes(path):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _READS
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and re.fullmatch(r"(?:KINDMEM|DATABASE)_[A-Z_]+", str(node.args[0].value))
            ):
                found[str(node.args[0].value)] = name_of(path)
            elif (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id.endswith("VARIABLE")
                and isinstance(node.value, ast.Constant)
            ):
                found[str(node.value.value)] = name_of(path)
    return found


def test_there_are_commands_and_variables_to_look_for() -> None:
    assert {"up", "doctor", "verify_log", "create_tenant"} <= set(OURS)
    assert {"KINDMEM_DATA_DIR", "KINDMEM_BIND", "DATABASE_URL", "KINDMEM_PG_BIN"} <= set(
        variables()
    )


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_described_with_each_of_its_options(name: str) -> None:
    described = [
        line
        for line in re.split(r"\n(?=\||\n)", _COMMANDS_PAGE)
        if re.search(rf"`{name}[ `]", line)
    ]
    assert described
    if name == "migrate":
        return  # Django's own
    text = "\n".join(described)
    assert [option for option in sorted(options(name)) if option not in text] == []


def test_every_variable_is_in_the_table_of_settings() -> None:
    rows = "\n".join(line for line in _SETTINGS_PAGE.splitlines() if line.startswith("| `"))
    read = variables()
    assert {name: read[name] for name in read if f"`{name}`" not in rows} == {}


def test_the_table_of_settings_names_nothing_that_is_not_read() -> None:
    rows = "\n".join(line for line in _SETTINGS_PAGE.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`((?:KINDMEM|DATABASE)_[A-Z_]+)`", rows))
    assert named - set(variables()) == set()


def test_the_command_that_prepares_a_server_is_one_that_exists() -> None:
    (module,) = re.findall(r"^\.venv/bin/python -m ([a-z.]+) postgresql://", _SETTINGS_PAGE, re.M)
    source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text("utf-8")
    assert '__name__ == "__main__"' in source
