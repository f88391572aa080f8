"""Accounts with a quick hash: a slow one is right for people, and wrong for thousands of made-up ones."""

from typing import Any

import pytest

# Loading the routes takes longer on a busy machine than a test's open transaction may idle.
import kindmem.urls  # noqa: F401


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
