"""Django's own admin, for operators of the installation: accounts, second factors, workspaces, members. No memory, no log.

Tenants' tables are behind the tenant wall, so workspaces have pages of their own (`operator_workspaces`) and no models here.
"""

from typing import Any

from allauth.account.decorators import secure_admin_login
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as say
from django.utils.translation import gettext_lazy as _

from corrections.navigation import role_name
from corrections.operator_workspaces import views


class OperatorSite(admin.AdminSite):
    site_header = _("kindmem for operators")
    site_title = _("kindmem for operators")
    index_title = _("Accounts and workspaces")
    site_url = "/"

    def get_urls(self) -> list[Any]:
        pages = views(self)
        return [
            path("workspaces/", pages["workspaces"], name="workspaces"),
            path("workspaces/new/", pages["new-workspace"], name="new-workspace"),
            path("workspaces/<slug:slug>/", pages["workspace"], name="workspace"),
            *super().get_urls(),
        ]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Workspaces first: they are no model here, and still what an operator looks for."""
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        url = reverse(f"{self.name}:workspaces")
        model = {
            "name": say("Workspaces and members"),
            "object_name": "Workspace",
            "admin_url": url,
            "add_url": reverse(f"{self.name}:new-workspace"),
            "view_only": True,
        }
        mine = {
            "name": say("Workspaces"),
            "app_label": "workspaces",
            "app_url": url,
            "has_module_perms": True,
            "models": [model],
        }
        return [mine, *apps]


class AccountAdmin(UserAdmin):
    """Accounts of people, with the workspaces they are members of."""

    list_display = ("email", "is_active", "is_staff", "last_login")
    ordering = ("email",)
    readonly_fields = ("email", "workspaces", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("email", "password")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser")}),
        (_("Workspaces"), {"fields": ("workspaces",)}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    list_filter = ("is_active", "is_staff")

    @admin.display(description=_("Member of"))
    def workspaces(self, user: User) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT slug, tenant_name, role FROM memberships_of(%s::int)", [user.pk])
            rows = cursor.fetchall()
        links = (
            (reverse("operators:workspace", args=[slug]), name, role_name(role))
            for slug, name, role in rows
        )
        return format_html_join("; ", '<a href="{}">{}</a>: {}', links) or "–"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """An account without a workspace is nobody's: it comes with its first membership, or by `createsuperuser`."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Members are rows of tenants that name their account; it is switched off, not removed."""
        return False


class SecondFactorAdmin(admin.ModelAdmin):
    """Passkeys, code generators and recovery codes, to take one away from somebody who lost it. Their secrets are not shown."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    search_fields = ("user__email",)
    fields = readonly_fields = ("user", "type", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


operators = OperatorSite(name="operators")
operators.register(User, AccountAdmin)
operators.register(Authenticator, SecondFactorAdmin)
operators.login = secure_admin_login(operators.login)  # type: ignore[method-assign]  # allauth's documented way
