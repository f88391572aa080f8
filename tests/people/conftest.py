"""Accounts with a quick hash, as for the pages."""

from tests.pages.conftest import quick_passwords

__all__ = ["quick_passwords"]
