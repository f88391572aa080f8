"""Members and their roles, for admins: list, add, change, end. The last owner stays, and nobody raises themselves."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from corrections.forms_admin import MembersFilter, NewMemberForm, RoleForm
from corrections.htmx import render_page
from corrections.paging import address, chips, place_of, posted
from corrections.proof import must_be_proved
from corrections.queries.names import names_of
from corrections.visit import APPOINTING, Visit, in_tenant
from memory.actions.change_role import change_role
from memory.actions.create_member import create_member
from memory.actions.end_membership import end_membership
from memory.errors import BadInput, DomainError, MemberExists, MemberKeepsAnOwner, PermissionDenied
from memory.queries.members import MemberView, find_member, list_members

MEMBERS_A_PAGE = 40


@require_GET
@in_tenant(*APPOINTING)
def members(visit: Visit) -> HttpResponse:
    form = MembersFilter(visit.request.GET)
    wanted, after = form.wanted(), place_of(visit.request)
    found = (
        []
        if form.is_bad
        else list_members(
            visit.principal.tenant_id,
            status=wanted.get("status", "active"),
            role=wanted.get("role"),
            search=wanted.get("q"),
            after=after,
            limit=MEMBERS_A_PAGE + 1,
        )
    )
    shown = found[:MEMBERS_A_PAGE]
    context = {
        "form": form,
        "chips": chips(visit.request, form),
        "clear_url": visit.url("members"),
        "members": shown,
        "older": address(visit.request, after=shown[-1].id)
        if len(found) > MEMBERS_A_PAGE
        else None,
        "newest": address(visit.request, drop=("after",)) if after else None,
    }
    return render_page(
        visit.request, "govern/members.html", context, fragment="govern/_members.html"
    )


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def new_member(visit: Visit) -> HttpResponse:
    form = NewMemberForm(
        posted(visit.request), initial={"role": "person"}, is_owner=visit.may("owner")
    )
    if form.is_bound and form.is_valid():
        given = form.cleaned_data
        must_be_proved(visit)
        answer = _saved(
            visit,
            form,
            lambda: (
                create_member(
                    principal=visit.principal,
                    email=given["email"],
                    role=given["role"],
                    subject=given["subject"] or None,
                ).id
            ),
        )
        if answer is not None:
            return answer
    status = 422 if form.errors else 200
    return render_page(visit.request, "govern/new_member.html", {"form": form}, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def member(visit: Visit, member_id: Any) -> HttpResponse:
    found = find_member(visit.principal.tenant_id, member_id)
    initial = {"role": found.role, "subject": found.subject}
    form = RoleForm(posted(visit.request), initial=initial, is_owner=visit.may("owner"))
    if form.is_bound and form.is_valid():
        given = form.cleaned_data
        must_be_proved(visit)
        answer = _saved(
            visit,
            form,
            lambda: (
                change_role(
                    principal=visit.principal,
                    member_id=found.id,
                    role=given["role"],
                    subject=given["subject"] or None,
                ).id
            ),
        )
        if answer is not None:
            return answer
    context = {"member": found, "form": form, **_standing(visit, found)}
    status = 422 if form.errors else 200
    return render_page(visit.request, "govern/member.html", context, status=status)


@require_http_methods(["GET", "POST"])
@in_tenant(*APPOINTING)
def end(visit: Visit, member_id: Any) -> HttpResponse:
    found = find_member(visit.principal.tenant_id, member_id)
    refusal: DomainError | None = None
    if visit.request.method == "POST":
        must_be_proved(visit)
        try:
            with transaction.atomic():
                end_membership(principal=visit.principal, member_id=found.id)
        except (PermissionDenied, MemberKeepsAnOwner) as error:
            refusal = error
        else:
            messages.success(visit.request, _("Ended. Their next request here is refused."))
            return HttpResponseRedirect(visit.list_url("members"))
    context = {"member": found, "refusal": refusal, **_standing(visit, found)}
    status = 200 if refusal is None else 409
    return render_page(visit.request, "govern/end_member.html", context, status=status)


def _standing(visit: Visit, found: MemberView) -> dict[str, Any]:
    """Whether the reader may change this member: owners may, admins those below them, nobody who left."""
    is_self = found.user_id == int(visit.principal.id)
    is_above = found.role in ("owner", "admin") and not visit.may("owner")
    return {
        "is_self": is_self,
        "is_above": is_above and not is_self,
        "may_change": found.left_at is None and not is_above,
        "may_end": found.left_at is None and (is_self or not is_above),
        "names": names_of(visit.principal, [found.role_granted_by]),
    }


def _saved(visit: Visit, form: RoleForm, save: Any) -> HttpResponse | None:
    """To the member, or None with the refusal as the form's error."""
    try:
        with transaction.atomic():
            member_id = save()
    except BadInput as error:
        for issue in error.issues:
            name = issue["path"].strip("/")
            form.add_error(name if name in form.fields else None, issue["message"])
        return None
    except MemberExists:
        form.add_error(
            "email", _("They are a member already, with another role or id. Change it there.")
        )
        return None
    except MemberKeepsAnOwner:
        form.add_error(
            "role", _("A workspace keeps at least one owner. Appoint another one first.")
        )
        return None
    except PermissionDenied as error:
        form.add_error(None, str(error))
        return None
    messages.success(visit.request, _("Saved."))
    return HttpResponseRedirect(visit.onward("member", member_id))
