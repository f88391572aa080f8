"""Types of facts, for admins: how each is searched, by which model, what content it takes, and how far its index is."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms_rules import NewTypeForm, TypeForm, schema_shown
from corrections.htmx import render_page
from corrections.paging import address, posted
from corrections.queries.fact_types import types_known
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.declare_type import Declaration, declare_type
from memory.embeddings.provider import available_models, default_model
from memory.errors import BadInput
from memory.search.progress import type_progress
from memory.type_policy import TypePolicy, type_policy

TYPES_A_PAGE = 40


@require_GET
@in_tenant(*APPOINTING)
def types(visit: Visit) -> HttpResponse:
    after = visit.request.GET.get("after", "")[:256].replace("\x00", "")
    found = types_known(visit.principal, after=after, limit=TYPES_A_PAGE + 1)
    shown = found[:TYPES_A_PAGE]
    context = {
        "types": shown,
        "default_model": default_model(),
        "older": address(visit.request, after=shown[-1].type)
        if len(found) > TYPES_A_PAGE
        else None,
        "newest": address(visit.request, drop=("after",)) if after else None,
    }
    return render_page(visit.request, "govern/types.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def fact_type(visit: Visit, name: str) -> HttpResponse:
    policy = type_policy(visit.principal.tenant_id, name)
    form = TypeForm(posted(visit.request), initial=_initial(policy), models=available_models())
    if form.is_bound and form.is_valid():
        saved = _saved(visit, form, policy)
        if saved is not None:
            return saved
    context = {
        "type": name,
        "policy": policy,
        "form": form,
        "progress": type_progress(visit.principal.tenant_id, name),
    }
    status = 422 if form.errors else 200
    return render_page(visit.request, "govern/type.html", context, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_type(visit: Visit) -> HttpResponse:
    initial = _initial(TypePolicy(""))
    form = NewTypeForm(posted(visit.request), initial=initial, models=available_models())
    if form.is_bound and form.is_valid():
        name = form.cleaned_data["type"]
        policy = type_policy(visit.principal.tenant_id, name)
        if policy.is_declared:
            form.add_error("type", _("This type is declared. Change it there."))
        else:
            saved = _saved(visit, form, policy)
            if saved is not None:
                return saved
    context = {"type": None, "form": form}
    status = 422 if form.errors else 200
    return render_page(visit.request, "govern/type.html", context, status=status)


def _initial(policy: TypePolicy) -> dict[str, Any]:
    schema = policy.content_schema
    return {
        "keyword": policy.keyword,
        "semantic": policy.semantic,
        "embedding_model": policy.embedding_model or "",
        "content_schema": "" if schema is None else schema_shown(schema),
    }


def _saved(visit: Visit, form: TypeForm, policy: TypePolicy) -> HttpResponse | None:
    """To the type, its retention as it was; or None with the refusal as the form's error."""
    given = form.cleaned_data
    declaration = Declaration(
        keyword=given["keyword"],
        semantic=given["semantic"],
        embedding_model=given["embedding_model"] or None,
        content_schema=given["content_schema"],
    )
    try:
        with transaction.atomic():
            declare_type(principal=visit.principal, type=policy.type, declaration=declaration)
    except BadInput as error:
        for issue in error.issues:
            is_schema = issue["path"].startswith("/contentSchema")
            where = issue["path"].removeprefix("/contentSchema")
            form.add_error(
                "content_schema" if is_schema else None, f"{where} {issue['message']}".strip()
            )
        return None
    messages.success(visit.request, _("Saved. Facts that are there follow in the background."))
    return HttpResponseRedirect(visit.url("fact-type", policy.type))
