"""Which passwords are taken: long ones of any characters, that are neither common, nor known elsewhere, nor little more than
words known here."""

from collections.abc import Iterable
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from corrections.breached_passwords import BreachedListError, check_list, is_listed
from tests.builders import TenantKit
from tests.pages.people import PASSWORD, Person, person


@pytest.fixture
def user(acme: TenantKit) -> object:
    made: Person = person(acme, "person", "ann")
    found = get_user_model().objects.get(pk=made.user_id)
    found.email = "maria.lundqvist@skyways.example"
    return found


@pytest.mark.parametrize(
    "password", [PASSWORD, "x" * 300, "žluťoučký kůň pěl", "            ·", "correct horse memory"]
)
def test_any_long_password_is_taken(user: object, password: str) -> None:
    validate_password(password, user)  # type: ignore[arg-type]  # a user


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("short words", "password_too_short"),
        ("1qaz2wsx3edc", "password_too_common"),
        ("Kindmem-Password-1", "password_of_known_words"),
        ("marialundqvist1", "password_of_known_words"),
        ("Skyways-Admin-26", "password_of_known_words"),
        ("acme memory acme", "password_of_known_words"),
    ],
)
def test_a_password_that_says_where_it_is_used_is_refused(
    user: object, password: str, code: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        validate_password(password, user)  # type: ignore[arg-type]  # a user
    assert code in {error.code for error in refused.value.error_list}


def test_without_a_person_the_products_own_words_are_known() -> None:
    with pytest.raises(ValidationError):
        validate_password("kindmem password")


# -- passwords that became known elsewhere ---------------------------------------------------------


def a_list(folder: Path, passwords: Iterable[str], ends: str = ":3\r\n") -> Path:
    digests = sorted(sha1(one.encode()).hexdigest().upper() for one in passwords)
    path = folder / "breached"
    path.write_text("".join(f"{digest}{ends}" for digest in digests), newline="")
    return path


@pytest.mark.parametrize("ends", [":3\r\n", ":12345\n", "\n"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 500])
def test_every_listed_password_is_found_and_no_other(tmp_path: Path, count: int, ends: str) -> None:
    path = a_list(tmp_path, [f"known {n}" for n in range(count)], ends)
    assert all(is_listed(path, f"known {n}") for n in range(count))
    assert not any(is_listed(path, f"nobody's {n}") for n in range(200))


def test_a_password_that_became_known_elsewhere_is_refused(
    user: object, tmp_path: Path, settings: Any
) -> None:
    validate_password("correct horse battery staple", user)  # type: ignore[arg-type]  # a user
    settings.KINDMEM_BREACHED_PASSWORDS = str(
        a_list(tmp_path, ["correct horse battery staple", "another one of many"])
    )
    with pytest.raises(ValidationError) as refused:
        validate_password("correct horse battery staple", user)  # type: ignore[arg-type]  # a user
    assert [error.code for error in refused.value.error_list] == ["password_breached"]
    validate_password("correct horse battery stable", user)  # type: ignore[arg-type]  # a user


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ("", "no SHA-1"),
        ("password\nletmein\n", "no SHA-1"),
        (f"{'B' * 40}:1\n{'A' * 40}:1\n", "not in order"),
    ],
)
def test_a_setting_that_names_no_list_is_refused_at_the_start(
    tmp_path: Path, content: str | None, says: str
) -> None:
    path = tmp_path / "list"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BreachedListError, match=f"KINDMEM_BREACHED_PASSWORDS: .*{says}"):
        check_list(path)
