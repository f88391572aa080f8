"""Where policy values are asked for, for admins: list, add, change, switch off, and try one now.

A trial asks outside any transaction, as recall does, so the page has two of them: one before, one after.
"""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from corrections.forms_rules import NewSourceForm, SourceForm
from corrections.htmx import render_page
from corrections.paging import posted
from corrections.source_words import trial_words
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.register_policy_source import change_policy_source, register_policy_source
from memory.errors import BadInput, PolicySourceExists, PolicySourceNotFound
from memory.policy_sources.reading import Trial, try_source
from memory.policy_sources.sources import PolicySource, find_sources

SHOWN_MAX = 2000


@require_GET
@in_tenant(*APPOINTING)
def sources(visit: Visit) -> HttpResponse:
    context = {"sources": find_sources(visit.principal.tenant_id)}
    return render_page(visit.request, "govern/sources.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_source(visit: Visit) -> HttpResponse:
    form = NewSourceForm(posted(visit.request))
    if form.is_bound and form.is_valid():
        saved = _saved(
            visit,
            form,
            lambda: register_policy_source(principal=visit.principal, **form.cleaned_data),
        )
        if saved is not None:
            return saved
    status = 422 if form.errors else 200
    context = {"form": form, "source": None}
    return render_page(visit.request, "govern/source.html", context, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def source(visit: Visit, source_id: Any) -> HttpResponse:
    found = _find(visit, source_id)
    form = SourceForm(posted(visit.request), initial=_initial(found))
    if form.is_bound and form.is_valid():
        saved = _saved(
            visit,
            form,
            lambda: change_policy_source(
                principal=visit.principal, source_id=str(found.id), fields=form.cleaned_data
            ),
        )
        if saved is not None:
            return saved
    status = 422 if form.errors else 200
    return render_page(
        visit.request, "govern/source.html", {"form": form, "source": found}, status=status
    )


@require_POST
def try_now(request: HttpRequest, tenant: str, source_id: Any) -> HttpResponseBase:
    """Ask the source as it is saved, and show what came of it."""
    chosen: list[PolicySource] = []
    refused = _chosen(request, tenant, source_id=source_id, into=chosen)
    if not chosen:
        return refused
    return _tried(request, tenant, source=chosen[0], trial=try_source(chosen[0]))


@in_tenant(*APPOINTING)
def _chosen(visit: Visit, source_id: Any, into: list[PolicySource]) -> HttpResponse:
    into.append(_find(visit, source_id))
    return HttpResponse(status=204)


@in_tenant(*APPOINTING)
def _tried(visit: Visit, source: PolicySource, trial: Trial) -> HttpResponse:
    value = trial.value_text
    context = {
        "source": source,
        "form": SourceForm(initial=_initial(source)),
        "trial": {
            "value": None if value is None else value[:SHOWN_MAX],
            "is_cut": value is not None and len(value) > SHOWN_MAX,
            "words": trial_words(trial.why),
            "why": trial.why,
        },
    }
    return render_page(visit.request, "govern/source.html", context)


def _find(visit: Visit, source_id: Any) -> PolicySource:
    known = {one.id: one for one in find_sources(visit.principal.tenant_id)}
    if source_id not in known:
        raise PolicySourceNotFound
    return known[source_id]


def _initial(source: PolicySource) -> dict[str, Any]:
    return {
        "match": source.match,
        "fetch_url": source.fetch_url,
        "pointer": source.pointer,
        "enabled": source.is_enabled,
    }


def _saved(visit: Visit, form: NewSourceForm, save: Any) -> HttpResponse | None:
    """To the source, or None with the refusal as the form's error."""
    try:
        with transaction.atomic():
            saved = save()
    except PolicySourceExists:
        form.add_error("match", _("There is a source for these pointers. Change it instead."))
        return None
    except BadInput as error:
        for issue in error.issues:
            name = issue["path"].strip("/")
            form.add_error(name if name in form.fields else None, issue["message"])
        return None
    messages.success(visit.request, _("Saved. Try it now: recall asks it from this moment."))
    return HttpResponseRedirect(visit.url("policy-source", saved.id))
