"""Every error code has a status, a class and a line that says what to do; nothing is documented that can't happen."""

import ast
import re

from memory.api.errors import STATUS
from memory.errors import CONSTRAINT_ERRORS, DomainError, InvariantViolated
from tests.completeness.sources import ROOT, files, name_of, nodes

_LINE = re.compile(r"^\| `([a-z-]+)` \| (\d{3}) \| (.+) \|$", re.MULTILINE)


def _documented() -> dict[str, tuple[int, str]]:
    lines = _LINE.findall((ROOT / "docs" / "errors.md").read_text("utf-8"))
    assert len({code for code, _, _ in lines}) == len(lines), "a code has two lines"
    return {code: (int(status), text) for code, status, text in lines}


def _classes(root: type[DomainError] = DomainError) -> list[type[DomainError]]:
    return [root, *(one for child in root.__subclasses__() for one in _classes(child))]


def test_every_code_is_documented_with_its_status_and_no_other_is() -> None:
    assert {code: status for code, (status, _) in _documented().items()} == STATUS


def test_every_documented_code_says_more_than_its_name() -> None:
    assert [code for code, (_, text) in _documented().items() if len(text) < 25] == []


def test_every_rule_has_a_code_with_a_status_and_every_code_a_rule() -> None:
    codes = {one.code for one in _classes()}
    assert codes == set(STATUS)


def test_every_code_is_stable_kebab_case_and_every_message_ends() -> None:
    for one in _classes():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", one.code)
        assert one.message.endswith("."), one


def test_a_constraint_speaks_with_a_known_code() -> None:
    assert {make().code for make in CONSTRAINT_ERRORS.values()} <= set(STATUS)


def _invariants_in_code() -> set[str]:
    """The names that are raised, and those of constraints."""
    named = {
        one.invariant
        for make in CONSTRAINT_ERRORS.values()
        if isinstance(one := make(), InvariantViolated)
    }
    for path in files(".py"):
        for node in nodes(path):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "InvariantViolated":
                continue
            (said,) = [one.value for one in node.keywords if one.arg == "invariant"]
            if name_of(path) == "memory/errors/constraints.py" and ast.unparse(said) == "name":
                continue  # what CONSTRAINT_ERRORS makes
            assert isinstance(said, ast.Constant), f"{name_of(path)}:{node.lineno}"
            named.add(str(said.value))
    return named


def test_every_invariant_that_refuses_is_explained_and_no_other_but_the_ten() -> None:
    section = (ROOT / "docs" / "errors.md").read_text("utf-8").split("\n## Invariants\n")[1]
    lines = re.findall(r"^\| `([A-Za-z0-9-]+)` \| (.+) \|$", section, re.MULTILINE)
    explained = dict(lines)
    assert len(explained) == len(lines), "a name has two lines"
    assert set(explained) == _invariants_in_code() | {f"I{n}" for n in range(1, 11)}
    assert [name for name, text in explained.items() if len(text) < 40 or text[-1] != "."] == []


def test_details_name_things_as_the_wire_does() -> None:
    for make in CONSTRAINT_ERRORS.values():
        assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name) for name in make().details)


KNOWN_OTHERWISE = {
    "member-exists": "tests/commands/test_create_member.py knows it by its words",
    "run-differs": "tests/import_runs/test_import_runs.py knows it by what it left alone",
    "quarantine-not-found": "the tests of every route ask for what nobody has",
    "webhook-not-found": "the tests of every route ask for what nobody has",
}


def test_every_code_is_what_some_test_expects() -> None:
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))]
    words = {word for text in texts for word in re.findall(r"\b[A-Z]\w+\b|\"[a-z-]+\"", text)}
    silent = {
        code
        for code in STATUS
        if f'"{code}"' not in words
        and not words & {one.__name__ for one in _classes() if one.code == code}
    }
    assert silent <= set(KNOWN_OTHERWISE)
