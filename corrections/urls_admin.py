"""The addresses of the admin's pages, below `/t/<tenant>/admin/`."""

from django.urls import URLPattern, URLResolver, path

from corrections.views import admin_overview, admin_routes, admin_workspace

urlpatterns: list[URLPattern | URLResolver] = [
    path("", admin_overview.overview, name="admin-overview"),
    path("workspace/", admin_workspace.workspace, name="workspace"),
    path("routes/", admin_routes.routes, name="correction-routes"),
    path("routes/new", admin_routes.new_route, name="new-correction-route"),
    path("routes/<any_id:name>/", admin_routes.route, name="correction-route"),
]
