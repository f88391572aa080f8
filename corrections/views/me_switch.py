"""The person's switch: whether agents may remember new guesses about them."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from corrections.views.me_acts import back_of
from corrections.visit import Visit, in_tenant
from memory.actions.switch_inferences import switch_inferences


@require_POST
@in_tenant(about_self=True)
def switch(visit: Visit) -> HttpResponse:
    """One press; back to where the button was."""
    allowed = visit.request.POST.get("allow") == "yes"
    switch_inferences(principal=visit.principal, allowed=allowed)
    said = (
        _("Agents may remember new things about you.")
        if allowed
        else _("Agents may not remember new guesses about you any more.")
    )
    messages.success(visit.request, said)
    return HttpResponseRedirect(back_of(visit))
