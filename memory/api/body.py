"""The body of a request, as bytes: counted as they are read, whole as they were announced, and JSON as they are labelled."""

from django.http import HttpRequest

from memory.errors import BadInput, BodyTooLarge, NotAcceptable, UnsupportedMediaType

_BROKEN_OFF = "ended early, or is framed wrongly"


def read_body(request: HttpRequest, *, max_bytes: int, is_needed: bool) -> bytes | None:
    """The bytes; None for a method without a body, an empty object's where none was sent and none is needed.

    Raises NotAcceptable, UnsupportedMediaType, BodyTooLarge, BadInput.
    """
    if request.method in ("GET", "HEAD"):
        return None
    accept = request.META.get("HTTP_ACCEPT", "*/*")
    if not any(kind in accept for kind in ("*/*", "application/*", "application/json")):
        raise NotAcceptable
    coding = request.META.get("HTTP_TRANSFER_ENCODING", "").strip().lower()
    if coding not in ("", "chunked"):
        raise UnsupportedMediaType
    # Django reads no body without a length; the server under it ends a chunked one itself.
    stream = request.META["wsgi.input"] if coding else request
    try:
        raw: bytes = stream.read(max_bytes + 1)
    except OSError:
        raise BadInput.at("", _BROKEN_OFF) from None
    if len(raw) > max_bytes:
        raise BodyTooLarge(limit_bytes=max_bytes)
    # What is there of a body that ended early may itself be valid JSON, and is not what was meant.
    length = request.META.get("CONTENT_LENGTH") or ""
    if not coding and length.isdecimal() and len(raw) < int(length):
        raise BadInput.at("", _BROKEN_OFF)
    if not raw and not is_needed:
        return b"{}"
    media = request.META.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if media != "application/json" or request.META.get("HTTP_CONTENT_ENCODING"):
        raise UnsupportedMediaType
    return raw
