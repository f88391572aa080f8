"""The page for what went wrong: what happened, that nothing was lost, what to do, and the request's number.

Rendered without the database and without the session: whatever failed may be just those.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from corrections.htmx import is_htmx, unkept
from corrections.look import look
from memory.api.errors import STATUS
from memory.errors import DomainError, RateLimited, RunDamaged


def _words(status: int) -> tuple[str, str]:
    """Title and explanation."""
    known = {
        400: (
            _("That request could not be read"),
            _("Nothing was changed. Go back and try again."),
        ),
        401: (_("Please sign in"), _("Your session has ended. Sign in to go on.")),
        403: (_("You may not do this here"), _("Nothing was changed.")),
        404: (_("Nothing here"), _("There is no such page, or it is not yours to see.")),
        405: (
            _("This address is for a form"),
            _("Nothing was changed. Go back to the page that has the form."),
        ),
        409: (
            _("Somebody changed this meanwhile"),
            _("Nothing of yours was saved. Go back, look at it anew, and decide again."),
        ),
        413: (_("That was too long"), _("Nothing was changed. Make it shorter and try again.")),
        422: (_("That can't be done"), _("Nothing was changed.")),
        429: (_("Too many tries"), _("Wait a little, then try again.")),
        500: (
            _("Something went wrong on our side"),
            _(
                "Nothing was lost and nothing was half saved. Try again; if it stays, quote the request number."
            ),
        ),
        503: (
            _("Not available right now"),
            _("Nothing was lost and nothing was half saved. Try again in a moment."),
        ),
    }
    return known.get(status, known[500])


def _words_of_damage() -> tuple[str, str]:
    return (
        _("The log was damaged, so this was not done"),
        _(
            "What is stored of the log was cut or changed outside the product. Acts that must be logged are refused until an "
            "operator has looked. Nothing was changed."
        ),
    )


def failure_page(
    request: HttpRequest, status: int, detail: str = "", words: tuple[str, str] | None = None
) -> HttpResponse:
    """`detail`: one sentence about this case, which never quotes memory text."""
    title, text = words or _words(status)
    context: dict[str, Any] = {
        **look(request),
        "title": title,
        "text": text,
        "detail": detail,
        "can_retry": status >= 500 and request.method == "GET",
        "retry_url": request.get_full_path(),
    }
    response = HttpResponse(render_to_string("state/failed.html", context), status=status)
    if status == 503:
        response["Retry-After"] = "1"
    if is_htmx(request):
        # A failure is a page of its own: shown inside a panel, it would pass for the panel's content.
        response["HX-Retarget"] = "body"
    return unkept(response)


def of_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    """The page for a refusal."""
    status = STATUS[error.code]
    detail = "" if status in (401, 404, 429, 500, 503) else str(error)
    words = _words_of_damage() if isinstance(error, RunDamaged) else None
    if not isinstance(error, RateLimited):
        return failure_page(request, status, detail, words)
    seconds = error.retry_after_seconds
    detail = ngettext("Try again in %(n)d second.", "Try again in %(n)d seconds.", seconds)
    response = failure_page(request, status, detail % {"n": seconds})
    response["Retry-After"] = str(seconds)
    return response
