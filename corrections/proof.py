"""What matters asks once more who it is: signing in, or proving it anew, is good for five minutes.

A form that came without such a proof is kept, and sent again after it. Who came by a page link has no account to prove: they read
what the link lets them do, and what needs an account.
"""

import time
from datetime import UTC, datetime
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from corrections.views.refused import kept_fields
from corrections.visit import NEXT, AnswerInstead, Visit


def proved_at(request: HttpRequest) -> datetime | None:
    """When the reader last signed in or proved that it is them."""
    if not request.user.is_authenticated:
        return None
    proofs = get_authentication_records(request, request.user)
    latest = max((proof["at"] for proof in proofs), default=None)
    return None if latest is None else datetime.fromtimestamp(latest, UTC)


def is_proved(request: HttpRequest) -> bool:
    """Whether the reader signed in, or proved that it is them, within the last five minutes."""
    at = proved_at(request)
    return (
        at is not None and time.time() - at.timestamp() < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    )


def must_be_proved(visit: Visit) -> None:
    """Go on only with a proof. Raises AnswerInstead, with the page that asks for one."""
    if visit.is_guest:
        raise AnswerInstead(needs_account(visit))
    if not is_proved(visit.request):
        raise AnswerInstead(_asked_for_proof(visit))


def _asked_for_proof(visit: Visit) -> HttpResponse:
    request, prove = visit.request, reverse("prove")
    if request.method in ("GET", "HEAD"):
        return HttpResponseRedirect(f"{prove}?{urlencode({NEXT: request.get_full_path()})}")
    context = {
        "kept": kept_fields(request),
        "send_to": request.get_full_path(),
        "prove": f"{prove}?{urlencode({NEXT: visit.url('proved')})}",
    }
    return render(request, "state/prove.html", context, status=403)


def needs_account(visit: Visit) -> HttpResponse:
    """What a page link's reader may do, and what takes an account."""
    return render(visit.request, "state/needs_account.html", status=403)
