"""The rules of the house that a reader can't keep in mind: which way imports run, what is never written, how long a file is."""

import ast
import re

import pytest

from tests.completeness.sources import PRODUCT, files, name_of, nodes

_MAY_IMPORT = {
    "memory": {"memory"},
    "corrections": {"corrections", "memory"},
    "kindmem": {"kindmem", "corrections", "memory"},
}
_CATCHES_ALL = {
    "memory/api/operation.py": "the edge: whatever happens becomes one clear answer",
    "kindmem/work_app.py": "the worker's edge: whatever a job raises, it is tried again, and its kind is told",
    "memory/refresh/look.py": "a refresh handler is not our code: whatever it raises is its failure",
}
_LINES_MAX = 400
_LONGER = {
    "memory/integrity/verify_bundle.py": "one file that an auditor reads and runs alone",
}
_NAMES_NOBODY_FINDS = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "managers",
    "signals",
}


def _imported(room: str) -> list[tuple[str, str]]:
    found = []
    for path in files(".py", under=(room,)):
        for node in nodes(path):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            found += [(name_of(path), name.partition(".")[0]) for name in names]
    return found


@pytest.mark.parametrize("room", PRODUCT)
def test_imports_run_one_way(room: str) -> None:
    imported = _imported(room)
    assert imported
    assert [one for one in imported if one[1] in PRODUCT and one[1] not in _MAY_IMPORT[room]] == []


def test_the_domain_does_not_import_its_tests() -> None:
    assert [one for room in PRODUCT for one in _imported(room) if one[1] == "tests"] == []


def _catches_all(handler: ast.ExceptHandler) -> bool:
    caught = ast.walk(handler.type) if handler.type else [ast.Name("BaseException")]
    return any(
        isinstance(one, ast.Name) and one.id in ("Exception", "BaseException") for one in caught
    )


def test_nothing_catches_every_error_but_the_edges() -> None:
    """A handler that raises again tidies up and hides nothing."""
    found = {
        name_of(path)
        for path in files(".py")
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler)
        and _catches_all(node)
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    }
    assert found == set(_CATCHES_ALL)


def test_no_error_is_swallowed() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in files(".py")
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler)
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Return)
        and isinstance(node.body[0].value, ast.Constant)
        and node.body[0].value.value is None
        and _catches_all(node)
    ]
    assert found == []


def test_no_file_is_longer_than_a_reader_takes_in() -> None:
    long = {
        name_of(path): lines
        for path in files(".py")
        if "migrations" not in path.parts  # the tables of a migration are in one place
        and (lines := len(path.read_text("utf-8").splitlines())) > _LINES_MAX
    }
    assert set(long) <= set(_LONGER), long


def test_no_file_is_named_after_nothing() -> None:
    found = [
        name_of(path)
        for path in files(
            ".py", ".html", ".js", ".css", under=(*PRODUCT, "tests", "templates", "static")
        )
        if _NAMES_NOBODY_FINDS & {path.stem.lower(), *(part.lower() for part in path.parts[:-1])}
    ]
    assert found == []


def test_every_module_says_what_it_decides() -> None:
    silent = []
    for path in files(".py"):
        text = path.read_text("utf-8").strip()
        if text and not re.match(r'(#!.*\n)?r?"""', text) and "migrations" not in path.parts:
            silent.append(name_of(path))
    assert silent == []


_NEVER = {
    r"\|\s*safe\b": (".html",),
    r"autoescape\s+off": (".html",),
    r"<script(?![^>]*\bsrc=)[^>]*>(?!\s*</script>)": (".html",),
    r"\son[a-z]+\s*=": (".html",),
    r"\sstyle\s*=\s*[\"']": (".html",),
    r"hx-on|hx-vals=.js:|javascript:": (".html",),
    r"\bmark_safe\(": (".py",),
    r"\bSafeString\(": (".py",),
    r"\.extra\(": (".py",),
    r"\bcsrf_exempt\b": (".py",),
    r"\bpickle\b|\bmarshal\b|\beval\(|\bexec\(": (".py",),
    r"\*\*\s*(?:self\.)?request\.(?:GET|POST|data|query_params)": (".py",),
    r"\b(?:TODO|FIXME|XXX|HACK)\b": (".py", ".html", ".sql", ".js", ".css"),
    r"\bSET\s+(?:SESSION\s+)?kindmem\.|set_config\([^)]*,\s*false\s*\)": (".py", ".sql"),
    r"\bSET\s+ROLE\b|\bSESSION\s+AUTHORIZATION\b": (".py",),
}
"""What is never written → in which files. Each stands for a fault that others had."""


@pytest.mark.parametrize("pattern", _NEVER)
def test_what_is_never_written_is_not_there(pattern: str) -> None:
    rule = re.compile(pattern)
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in files(*_NEVER[pattern], under=(*PRODUCT, "templates", "static"))
        if "vendor" not in path.parts
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if rule.search(line)
    ]
    assert found == []


def test_the_tenant_is_set_in_two_places_only() -> None:
    """`tenant_context`, and the statement that looks the caller up; both for the transaction alone."""
    found = {
        name_of(path)
        for path in files(".py")
        if re.search(r"set_config\('(?:\{SETTING\}|kindmem\.)", path.read_text("utf-8"))
    }
    assert found == {"memory/tenancy.py", "memory/api/authentication.py"}


_BY_NAME = re.compile(
    r"\bimport_module\(|\bimport_string\(|__import__\(|\bsubprocess\b|\bos\.(?:system|popen|exec\w*)\(|\byaml\b|\bpoint\.load\(|\bcompile\(\s*[a-z_]+\s*,\s*[\"']<"
)


def test_what_runs_code_by_name_takes_the_name_from_the_operator() -> None:
    """A handler is an entry point of an installed package, a signer a setting; nothing that was sent is imported or run.

    The checker of bundles, on an auditor's own machine, may ask their openssl about a time stamp.
    """
    found = {
        name_of(path)
        for path in files(".py", under=("memory", "corrections"))
        if _BY_NAME.search(path.read_text("utf-8"))
    }
    assert found == {
        "memory/integrity/signing.py",
        "memory/integrity/verify_bundle.py",
        "memory/refresh/registry.py",
    }
