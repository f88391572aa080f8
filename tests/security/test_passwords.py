"""Which passwords are taken: long ones of any characters, that are neither common nor little more than words known here."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

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
