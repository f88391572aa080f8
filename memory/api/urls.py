"""The routes of the binding API, version 1."""

from django.urls import include, path

from memory.api import converters  # noqa: F401  # registers the `id` converter before routes use it
from memory.api.views import description, me

urlpatterns = [
    # What agents ask all day is found first.
    path("", include("memory.api.routes_records")),
    path("", include("memory.api.routes_log")),
    path("", include("memory.api.routes_facts")),
    path("", include("memory.api.routes_retrieve")),
    path("", include("memory.api.routes_lifecycle")),
    path("", include("memory.api.routes_people")),
    path("", include("memory.api.routes_trust")),
    path("", include("memory.api.routes_integrity")),
    path("", include("memory.api.routes_webhooks")),
    path("openapi.json", description.Description.as_view(), name="openapi"),
    path("docs", description.DocsPage.as_view(url_name="openapi"), name="docs"),
    path("memory/me", me.Me.as_view(), name="me"),
]
