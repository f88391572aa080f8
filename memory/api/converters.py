"""Ids in paths: any text, slashes included, since ids are the callers' own. Routes with a suffix are listed before bare ones."""

from django.urls import register_converter


class Id:
    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(Id, "id")
