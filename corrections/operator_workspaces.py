"""The operator's pages of workspaces: which there are, who belongs to one, making one, appointing a member. No memory, no log.

Each workspace is read in a transaction of its own tenant; what is made goes through the product's own actions and is on record
in the tenant's log of governance.
"""

import zoneinfo
from typing import Any

from allauth.account.decorators import reauthentication_required
from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from corrections.failure_pages import of_error
from corrections.navigation import role_name
from memory.access import system_principal
from memory.actions.create_member import EMAIL_MAX, ROLES, create_member
from memory.actions.create_tenant import NAME_MAX, create_tenant
from memory.admission import ID_MAX
from memory.errors import BadInput, DomainError, MemberExists
from memory.models import Member, Tenant
from memory.tenancy import all_tenants, tenant_context, tenant_id_of

WORKSPACES_A_PAGE = 100
MEMBERS_SHOWN = 500
MAY_ACT = "auth.change_user"
"""The right, of Django's own, that appoints: whoever may change accounts."""


class WorkspaceForm(forms.Form):
    slug = forms.RegexField(
        r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        label=gettext_lazy("Name in addresses"),
        help_text=gettext_lazy("a to z, 0 to 9 and -, such as acme."),
    )
    name = forms.CharField(label=gettext_lazy("Name"), required=False, max_length=NAME_MAX)
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"), initial="UTC")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        zones = sorted(zoneinfo.available_timezones())
        self.fields["time_zone"].choices = [(zone, zone) for zone in zones]  # type: ignore[attr-defined]  # a choice field


class MemberForm(forms.Form):
    email = forms.EmailField(label=gettext_lazy("Email"), max_length=EMAIL_MAX)
    role = forms.ChoiceField(label=gettext_lazy("Role"))
    subject = forms.CharField(
        label=gettext_lazy("Person in memory"),
        required=False,
        max_length=ID_MAX,
        help_text=gettext_lazy("The id that agents know the person by; for the role Person."),
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["role"].choices = [(role, role_name(role)) for role in ROLES]  # type: ignore[attr-defined]  # a choice field


def _page(
    site: AdminSite, request: HttpRequest, template: str, title: str, **context: Any
) -> HttpResponse:
    form = context.get("form")
    status = 422 if form is not None and form.errors else 200
    context |= {**site.each_context(request), "title": title}
    return render(request, f"operators/{template}.html", context, status=status)


@require_http_methods(["GET"])
def workspaces(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """The open workspaces whose name in addresses holds what is looked for."""
    words = request.GET.get("q", "").strip()
    found = [slug for _id, slug in all_tenants() if words in slug]
    shown = Paginator(found, WORKSPACES_A_PAGE).get_page(request.GET.get("p"))
    return _page(site, request, "workspaces", _("Workspaces"), page=shown, words=words)


@require_http_methods(["GET", "POST"])
def workspace(request: HttpRequest, slug: str, *, site: AdminSite) -> HttpResponse:
    """One workspace with its members, and a form that appoints one."""
    may_act = request.user.has_perm(MAY_ACT)
    try:
        tenant_id = tenant_id_of(slug)
    except DomainError as error:
        return of_error(request, error)
    form = MemberForm(request.POST if request.method == "POST" and may_act else None)
    if form.is_bound and form.is_valid() and _appointed(request, tenant_id, slug, form):
        return HttpResponseRedirect(request.path)
    with tenant_context(tenant_id):
        tenant = Tenant.objects.get(id=tenant_id)
        members = list(
            Member.objects.filter(tenant_id=tenant_id, left_at=None)
            .select_related("user")
            .order_by("role", "user__email")[: MEMBERS_SHOWN + 1]
        )
    context = {
        "tenant": tenant,
        "members": [(one, role_name(one.role)) for one in members[:MEMBERS_SHOWN]],
        "has_more": len(members) > MEMBERS_SHOWN,
        "form": form if may_act else None,
    }
    return _page(site, request, "workspace", tenant.name, **context)


def _appointed(request: HttpRequest, tenant_id: Any, slug: str, form: MemberForm) -> bool:
    """Whether it was done; else the form says why not."""
    given = form.cleaned_data
    operator = system_principal(tenant_id, slug, id=f"operator-{request.user.pk}")
    try:
        made = create_member(
            principal=operator,
            email=given["email"],
            role=given["role"],
            subject=given["subject"] or None,
        )
    except MemberExists as error:
        form.add_error("email", str(error))
    except BadInput as error:
        _say(form, error)
    else:
        messages.success(request, _("%(email)s is a member now.") % {"email": made.email})
        return True
    return False


def _say(form: forms.Form, error: BadInput) -> None:
    for issue in error.issues:
        name = issue["path"].strip("/")
        form.add_error(name if name in form.fields else None, issue["message"])


@require_http_methods(["GET", "POST"])
def new_workspace(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    if not request.user.has_perm(MAY_ACT):
        return HttpResponseRedirect(reverse("operators:workspaces"))
    form = WorkspaceForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        given = form.cleaned_data
        try:
            create_tenant(
                slug=given["slug"], name=given["name"] or None, time_zone=given["time_zone"]
            )
        except BadInput as error:
            _say(form, error)
        else:
            messages.success(request, _("The workspace is made. Appoint its owner now."))
            return HttpResponseRedirect(reverse("operators:workspace", args=[given["slug"]]))
    return _page(site, request, "new_workspace", _("New workspace"), form=form)


def views(site: AdminSite) -> dict[str, Any]:
    """The views as the site serves them: to operators, and what appoints after a proof of who asks."""
    return {
        "workspaces": site.admin_view(_of(site, workspaces)),
        "workspace": site.admin_view(
            reauthentication_required(_of(site, workspace), allow_get=True)
        ),
        "new-workspace": site.admin_view(
            reauthentication_required(_of(site, new_workspace), allow_get=True)
        ),
    }


def _of(site: AdminSite, view: Any) -> Any:
    def page(request: HttpRequest, **path: str) -> HttpResponse:
        answer: HttpResponse = view(request, site=site, **path)
        return answer

    return page
