"""Django's own admin, for operators of the installation: accounts, and which workspaces they belong to. No memory, no log.

Tenants' tables are behind the tenant wall, so workspaces are listed through the functions that may say their names.
"""

from typing import Any

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _


class OperatorSite(admin.AdminSite):
    site_header = _("kindmem for operators")
    site_title = _("kindmem for operators")
    index_title = _("Accounts and workspaces")
    site_url = "/"


class AccountAdmin(UserAdmin):
    """Accounts of people, with the workspaces they are members of."""

    list_display = ("email", "is_active", "is_staff", "last_login")
    ordering = ("email",)
    readonly_fields = ("workspaces", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "email", "password")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser")}),
        (_("Workspaces"), {"fields": ("workspaces",)}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    list_filter = ("is_active", "is_staff")

    @admin.display(description=_("Member of"))
    def workspaces(self, user: User) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT tenant_name, slug, role FROM memberships_of(%s::int)", [user.pk])
            return format_html_join("; ", "{} ({}): {}", cursor.fetchall()) or "–"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Members are rows of tenants that name their account; it is switched off, not removed."""
        return False


operators = OperatorSite(name="operators")
operators.register(User, AccountAdmin)
operators.login = secure_admin_login(operators.login)  # type: ignore[method-assign]  # allauth's documented way
