"""The product's own files: what the rules of the house are read from."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("kindmem", "corrections", "memory")


@cache
def files(*suffixes: str, under: tuple[str, ...] = PRODUCT) -> list[Path]:
    """Every file of these rooms."""
    found = [path for room in under for path in sorted((ROOT / room).rglob("*"))]
    return [path for path in found if path.suffix in suffixes and "__pycache__" not in path.parts]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=name_of(path))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(tree_of(path))
