"""`<any_id:…>` in the paths of pages: an id as one segment, whatever it holds."""

from django.urls import register_converter

from memory.path_segments import segment_of, text_of


class AnyId:
    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return text_of(value)

    def to_url(self, value: str) -> str:
        return segment_of(value)


register_converter(AnyId, "any_id")
