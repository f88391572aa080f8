"""Agents and their keys, for admins: list, make, bound, rotate, revoke.

A token is shown once, in the answer to the form that made it.
"""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms_admin import KeyForm, KeysFilter, QuotaForm, RotateForm
from corrections.htmx import render_page
from corrections.once import new_key as new_once
from corrections.once import sent_once
from corrections.paging import address, chips, place_of, posted
from corrections.proof import must_be_proved
from corrections.queries.names import names_of
from corrections.quota_words import quotas_shown
from corrections.visit import APPOINTING, Visit, in_tenant
from corrections.words import key_badge
from memory.actions.create_api_key import NewKey, create_api_key
from memory.actions.revoke_api_key import revoke_api_key
from memory.actions.rotate_key import rotate_key
from memory.actions.set_key_quota import set_key_quota
from memory.queries.api_keys import ApiKeyView, find_api_key, list_api_keys

KEYS_A_PAGE = 40


@require_GET
@in_tenant(*APPOINTING)
def keys(visit: Visit) -> HttpResponse:
    form = KeysFilter(visit.request.GET)
    status = form.wanted().get("status") or "active"
    after = place_of(visit.request)
    found = (
        []
        if form.is_bad
        else list_api_keys(
            visit.principal.tenant_id, status=status, after=after, limit=KEYS_A_PAGE + 1
        )
    )
    shown = found[:KEYS_A_PAGE]
    older = address(visit.request, after=shown[-1].id) if len(found) > KEYS_A_PAGE else None
    quotas = quotas_shown(visit.principal.tenant_id, shown)
    context = {
        "form": form,
        "chips": chips(visit.request, form),
        "clear_url": visit.url("api-keys"),
        "rows": [
            {"key": one, "badge": key_badge(one.status), "quota": quotas[one.prefix]}
            for one in shown
        ],
        "older": older,
        "newest": address(visit.request, drop=("after",)) if after else None,
    }
    return render_page(visit.request, "govern/keys.html", context, fragment="govern/_keys.html")


@require_GET
@in_tenant(*APPOINTING)
def key(visit: Visit, prefix: str) -> HttpResponse:
    found = find_api_key(visit.principal.tenant_id, prefix)
    context = {
        "key": found,
        "badge": key_badge(found.status),
        "grants": grants_of(found),
        "quota": quotas_shown(visit.principal.tenant_id, [found])[prefix],
        "names": names_of(visit.principal, [found.created_by]),
    }
    return render_page(visit.request, "govern/key.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_key(visit: Visit) -> HttpResponse:
    is_owner = visit.may("owner")
    form = KeyForm(posted(visit.request), initial={"once": new_once()}, is_owner=is_owner)
    if form.is_bound and form.is_valid():
        given = form.cleaned_data

        def make() -> NewKey:
            return create_api_key(
                principal=visit.principal,
                name=given["name"],
                role=given["role"],
                everything=given["everything"],
                abilities=given["abilities"],
                expires_days=given["expires_days"],
                **form.containers(),
            )

        must_be_proved(visit)
        return _shown_once(visit, make)
    status = 422 if form.errors else 200
    return render_page(visit.request, "govern/new_key.html", {"form": form}, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def rotate(visit: Visit, prefix: str) -> HttpResponse:
    found = find_api_key(visit.principal.tenant_id, prefix)
    form = RotateForm(posted(visit.request), initial={"once": new_once()})
    if form.is_bound and form.is_valid() and found.status != "revoked":
        hours = form.cleaned_data["overlap_hours"]
        must_be_proved(visit)
        return _shown_once(
            visit,
            lambda: rotate_key(principal=visit.principal, prefix=prefix, overlap_hours=hours),
        )
    status = 422 if form.errors else 200
    context = {"key": found, "form": form, "badge": key_badge(found.status)}
    return render_page(visit.request, "govern/rotate_key.html", context, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def revoke(visit: Visit, prefix: str) -> HttpResponse:
    found = find_api_key(visit.principal.tenant_id, prefix)
    if visit.request.method == "POST":
        must_be_proved(visit)
        revoke_api_key(principal=visit.principal, prefix=prefix)
        messages.success(visit.request, _("Revoked. Its next request is refused."))
        return HttpResponseRedirect(visit.onward("api-key", prefix))
    context = {"key": found, "badge": key_badge(found.status)}
    return render_page(visit.request, "govern/revoke_key.html", context)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def quota(visit: Visit, prefix: str) -> HttpResponse:
    found = find_api_key(visit.principal.tenant_id, prefix)
    now = {name: getattr(found.quota, name) for name in ("writes", "bytes", "subjects")}
    initial = {**now, "window_seconds": found.quota.window_seconds, "once": new_once()}
    form = QuotaForm(posted(visit.request), initial=initial, key=found)
    if form.is_bound and form.is_valid() and found.status == "active":

        def act() -> str:
            set_key_quota(principal=visit.principal, prefix=prefix, quota=form.quota())
            messages.success(visit.request, _("Saved. It holds from the key's next request."))
            return visit.onward("api-key", prefix)

        must_be_proved(visit)
        return sent_once(visit, act)
    status = 422 if form.errors else 200
    context = {"key": found, "form": form, "badge": key_badge(found.status)}
    return render_page(visit.request, "govern/key_quota.html", context, status=status)


def _shown_once(visit: Visit, make: Callable[[], NewKey]) -> HttpResponse:
    """The page with the token; the second of two sends is led to the key, which shows none."""
    made: list[NewKey] = []

    def act() -> str:
        made.append(make())
        return visit.onward("api-key", made[0].prefix)

    led = sent_once(visit, act)
    if not made:
        messages.info(visit.request, _("This form was sent before. Its token was shown then."))
        return led
    new = made[0]
    context = {"new": new, "key": find_api_key(visit.principal.tenant_id, new.prefix)}
    return render_page(visit.request, "govern/key_once.html", context)


def grants_of(key: ApiKeyView) -> list[tuple[str, list[str]]]:
    """The containers that the key has, those it has none of left out."""
    named = [
        (_("Projects"), key.projects),
        (_("Users"), key.users),
        (_("Projects on whose behalf"), key.on_behalf_of),
        (_("Organisations"), key.orgs),
        (_("Participants"), key.participants),
        (_("Threads"), key.threads),
    ]
    return [(label, ids) for label, ids in named if ids]
