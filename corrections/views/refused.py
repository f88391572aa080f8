"""A form that came without a valid token: nothing was done, the text is kept, one press sends it again."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from memory.api.errors import respond
from memory.errors import CsrfFailed

KEPT_MAX = 64
NEVER_KEPT = frozenset(
    {
        "csrfmiddlewaretoken",
        "password",
        "password1",
        "password2",
        "oldpassword",
        "code",
        "credential",
    }
)


def kept_fields(request: HttpRequest) -> list[tuple[str, str]]:
    """What was typed, to send again; never secrets, at most KEPT_MAX fields."""
    pairs = [
        (name, value)
        for name, values in request.POST.lists()
        if name not in NEVER_KEPT
        for value in values
        if isinstance(value, str)
    ]
    return pairs[:KEPT_MAX]


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    if request.path.startswith("/v1/") or "text/html" not in request.META.get("HTTP_ACCEPT", "*/*"):
        return respond(CsrfFailed(), request)
    context = {"kept": kept_fields(request), "send_to": request.get_full_path()}
    return render(request, "state/stale_form.html", context, status=403)
