"""The page on security lists every requirement of ASVS 5.0, level 1 and 2, once and with its level, and names what exists."""

import re

from tests.completeness.sources import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
_ROW = re.compile(r"^\| ([\d., ]+) \| ([12]) \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)
_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|html|js|lock|toml)|\.ci/\w+)`")
STATES = {"met", "partly", "not met", "operator", "n/a"}
LEVELS = {
    **{"1.1": "22", "1.2": "1111122223", "1.3": "112222222223", "1.4": "222", "1.5": "123"},
    **{"2.1": "122", "2.2": "112", "2.3": "12223", "2.4": "23"},
    **{"3.1": "3", "3.2": "113", "3.3": "12223", "3.4": "11222233", "3.5": "11122333"},
    **{"3.6": "3", "3.7": "22333"},
    **{"4.1": "12233", "4.2": "23333", "4.3": "22", "4.4": "1222"},
    **{"5.1": "2", "5.2": "112333", "5.3": "113", "5.4": "222"},
    **{"6.1": "122", "6.2": "111111112222", "6.3": "11223333", "6.4": "112233"},
    **{"6.5": "22222333", "6.6": "2223", "6.7": "33", "6.8": "2222"},
    **{"7.1": "222", "7.2": "1111", "7.3": "22", "7.4": "11222", "7.5": "223", "7.6": "22"},
    **{"8.1": "1233", "8.2": "1123", "8.3": "133", "8.4": "23"},
    **{"9.1": "111", "9.2": "1222"},
    **{"10.1": "22", "10.2": "223", "10.3": "22223", "10.4": "1111122222233333"},
    **{"10.5": "22222", "10.6": "22", "10.7": "222"},
    **{"11.1": "2233", "11.2": "22233", "11.3": "11233", "11.4": "1222", "11.5": "23"},
    **{"11.6": "23", "11.7": "33"},
    **{"12.1": "12233", "12.2": "11", "12.3": "22223"},
    **{"13.1": "2333", "13.2": "222223", "13.3": "2233", "13.4": "1222233"},
    **{"14.1": "22", "14.2": "12223333", "14.3": "122"},
    **{"15.1": "12233", "15.2": "12233", "15.3": "1222222", "15.4": "3333"},
    **{"16.1": "2", "16.2": "22222", "16.3": "2222", "16.4": "222", "16.5": "2223"},
    **{"17.1": "23", "17.2": "22223333", "17.3": "22"},
}
"""Section → the level of each of its requirements, in order, as the standard's table of version 5.0.0 has them."""


def required() -> dict[str, str]:
    """Number → level, of levels 1 and 2."""
    return {
        f"{section}.{number}": level
        for section, levels in LEVELS.items()
        for number, level in enumerate(levels, 1)
        if level != "3"
    }


def rows() -> list[tuple[list[str], str, str, str, str]]:
    found = _ROW.findall(PAGE)
    return [(one[0].split(", "), *one[1:]) for one in found]


def test_the_table_of_levels_is_the_standards() -> None:
    levels = "".join(LEVELS.values())
    assert [levels.count(level) for level in "123"] == [70, 183, 92]
    assert {section.split(".")[0] for section in LEVELS} == {str(n) for n in range(1, 18)}


def test_every_requirement_of_both_levels_is_listed_once_and_with_its_level() -> None:
    listed = [(number, level) for numbers, level, *_ in rows() for number in numbers]
    assert sorted(listed) == sorted(required().items())


def test_each_says_how_it_stands_and_where_or_why() -> None:
    for numbers, _, asks, state, where in rows():
        assert state in STATES, numbers
        assert len(asks) > 3, numbers
        if state in ("met", "partly"):
            assert _FILE.search(where) or where == "above" or where.startswith("above;"), numbers
        if state == "not met":
            assert "Next: " in where or where.startswith("see "), numbers
        if state == "n/a":
            assert len(where) > 3, numbers


def test_every_file_that_is_named_exists() -> None:
    named = set(_FILE.findall(PAGE))
    assert len(named) > 60
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_command_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", PAGE)) <= targets
    commands = {path.stem for path in ROOT.rglob("management/commands/*.py")}
    assert set(re.findall(r"`((?:rotate|revoke)_\w+)[` ]", PAGE)) <= commands
