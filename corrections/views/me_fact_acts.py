"""What a person can do about a fact of their own: say that it is right, or have it removed; what forbids it is said."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from corrections.acting import done_once
from corrections.facts_shown import shown
from corrections.htmx import render_page
from corrections.once import new_key
from corrections.post_only import post_only
from corrections.queries.my_facts import my_fact_revisions
from corrections.refusal_words import refusal_words
from corrections.visit import Visit, in_tenant
from memory.access import holds_containers, names_no_container
from memory.actions.delete_fact import delete_fact
from memory.actions.verify_fact import verify_fact
from memory.errors import DomainError, FactNotFound
from memory.fact_shape import FactView


def is_theirs(visit: Visit, fact: FactView) -> bool:
    """Whether it is in containers of the reader's alone."""
    return not names_no_container(fact.scope) and holds_containers(visit.principal, fact.scope)


def may_act_on(visit: Visit, fact: FactView) -> bool:
    """Whether the reader may write it: in use, and theirs."""
    return fact.invalidated_at is None and is_theirs(visit, fact)


def _own(visit: Visit, fact_id: str) -> FactView:
    """Raises FactNotFound for what is not about the reader, or not theirs to change. It may have been removed."""
    fact = my_fact_revisions(visit.principal, fact_id, limit=1)[0]
    if not is_theirs(visit, fact):
        raise FactNotFound
    return fact


def _over(visit: Visit, fact: FactView) -> HttpResponse:
    """Whoever comes back to a form of what was removed meanwhile is led to what it is now."""
    messages.info(visit.request, _("It was removed already. Nothing more was changed."))
    return HttpResponseRedirect(visit.onward("my-fact", fact.id))


def _seen(visit: Visit) -> int | None:
    """The version that the reader looked at."""
    given = visit.request.POST.get("expect", "")
    return int(given) if given.isdecimal() and len(given) <= 9 else None


@post_only("my-fact", "fact_id")
@in_tenant(about_self=True)
def confirm_fact(visit: Visit, fact_id: str) -> HttpResponse:
    fact = _own(visit, fact_id)
    if fact.invalidated_at is not None:
        return _over(visit, fact)

    def act() -> str:
        verify_fact(principal=visit.principal, fact_id=fact_id, expect_version=_seen(visit))
        messages.success(visit.request, _("Checked. Thank you."))
        return visit.onward("my-fact", fact_id)

    return done_once(visit, act, lambda error: _page(visit, fact, error=error))


@require_http_methods(["GET", "POST"])
@in_tenant(about_self=True)
def remove_fact(visit: Visit, fact_id: str) -> HttpResponse:
    fact = _own(visit, fact_id)
    if fact.invalidated_at is not None:
        return _over(visit, fact)
    if visit.request.method != "POST":
        return _page(visit, fact)

    def act() -> str:
        delete_fact(principal=visit.principal, fact_id=fact_id, expect_version=_seen(visit))
        messages.success(visit.request, _("No agent reads it any more."))
        return visit.onward("my-fact", fact_id)

    return done_once(visit, act, lambda error: _page(visit, fact, error=error))


def _page(visit: Visit, fact: FactView, *, error: DomainError | None = None) -> HttpResponse:
    context = {
        "shown": shown(fact),
        "fact": fact,
        "once": new_key(),
        "error": refusal_words(error) if error is not None else None,
    }
    status = 200 if error is None else 409
    return render_page(visit.request, "me/remove_fact.html", context, status=status)
