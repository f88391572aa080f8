"""What belongs to an account and to no workspace: proving anew who one is, ending one session, a form kept over a sign-in, and
what is not done by letter."""

from allauth.usersessions.models import UserSession
from allauth.usersessions.views import list_usersessions
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from corrections.accounts import way_to_prove
from corrections.htmx import unkept
from corrections.kept_forms import kept_form
from corrections.proof import is_proved
from corrections.visit import NEXT


@login_required
@require_GET
def prove(request: HttpRequest) -> HttpResponse:
    """On to the way that this person has."""
    given = request.GET.get(NEXT, "")
    is_ours = url_has_allowed_host_and_scheme(given, allowed_hosts=None) and given.startswith("/")
    return HttpResponseRedirect(way_to_prove(request, given if is_ours else "/"))


@login_required
def sessions(request: HttpRequest) -> HttpResponse:
    """Where one is signed in. Signing out everywhere else asks for a proof."""
    if request.method == "POST" and not is_proved(request):
        return _proof_first(request)
    shown: HttpResponse = list_usersessions(request)
    return shown


def _proof_first(request: HttpRequest) -> HttpResponse:
    """To where one proves who one is, and from there back to the list."""
    messages.info(request, _("Prove that it is you, then sign the other browser out."))
    return HttpResponseRedirect(way_to_prove(request, reverse("usersessions_list")))


@login_required
@require_POST
def end_session(request: HttpRequest, session_id: int) -> HttpResponse:
    """Sign out one browser of one's own, after a proof. One that is not there any more is signed out as well."""
    if not is_proved(request):
        return _proof_first(request)
    found = UserSession.objects.filter(pk=session_id, user_id=request.user.pk).first()
    if found is not None:
        found.end()
    messages.success(request, _("That browser is signed out."))
    return redirect("usersessions_list")


@login_required
@require_GET
def kept(request: HttpRequest) -> HttpResponse:
    """What was typed before the session ended, for one press; to the start where nothing is kept any more."""
    found = kept_form(request)
    if found is None:
        messages.info(request, _("Nothing is kept any more. Type it again, please."))
        return redirect("tenants")
    context = {"kept": found.fields, "send_to": found.send_to}
    return unkept(render(request, "state/kept.html", context))


@require_GET
def no_letters(request: HttpRequest) -> HttpResponse:
    """In place of what the sign-in library would do by mail: the product sends none."""
    return unkept(render(request, "account/no_letters.html"))
