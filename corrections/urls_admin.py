"""The addresses of the admin's pages, below `/t/<tenant>/admin/`."""

from django.urls import URLPattern, URLResolver, path

from corrections.views import (
    admin_erasures,
    admin_keys,
    admin_members,
    admin_overview,
    admin_routes,
    admin_sources,
    admin_types,
    admin_workspace,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", admin_overview.overview, name="admin-overview"),
    path("workspace/", admin_workspace.workspace, name="workspace"),
    path("keys/", admin_keys.keys, name="api-keys"),
    path("keys/new", admin_keys.new_key, name="new-api-key"),
    path("keys/<slug:prefix>/", admin_keys.key, name="api-key"),
    path("keys/<slug:prefix>/rotate", admin_keys.rotate, name="rotate-api-key"),
    path("keys/<slug:prefix>/revoke", admin_keys.revoke, name="revoke-api-key"),
    path("members/", admin_members.members, name="members"),
    path("members/new", admin_members.new_member, name="new-member"),
    path("members/<uuid:member_id>/", admin_members.member, name="member"),
    path("members/<uuid:member_id>/end", admin_members.end, name="end-member"),
    path("erasures/", admin_erasures.erasures, name="erasures"),
    path("erasures/new", admin_erasures.new_erasure, name="new-erasure"),
    path("erasures/ledger", admin_erasures.ledger, name="erasure-ledger"),
    path("erasures/<uuid:erasure_id>/", admin_erasures.erasure, name="erasure"),
    path("erasures/<uuid:erasure_id>/resume", admin_erasures.resume, name="resume-erasure"),
    path("types/", admin_types.types, name="fact-types"),
    path("types/new", admin_types.new_type, name="new-fact-type"),
    path("types/<any_id:name>/", admin_types.fact_type, name="fact-type"),
    path("sources/", admin_sources.sources, name="policy-sources"),
    path("sources/new", admin_sources.new_source, name="new-policy-source"),
    path("sources/<uuid:source_id>/", admin_sources.source, name="policy-source"),
    path("sources/<uuid:source_id>/try", admin_sources.try_now, name="try-policy-source"),
    path("routes/", admin_routes.routes, name="correction-routes"),
    path("routes/new", admin_routes.new_route, name="new-correction-route"),
    path("routes/<any_id:name>/", admin_routes.route, name="correction-route"),
]
