"""The addresses of the admin's pages, below `/t/<tenant>/admin/`."""

from django.urls import URLPattern, URLResolver, include, path

from corrections.views import (
    admin_close,
    admin_erasures,
    admin_hold_place,
    admin_hold_release,
    admin_holds,
    admin_keys,
    admin_members,
    admin_overview,
    admin_retention,
    admin_routes,
    admin_sources,
    admin_sweeps,
    admin_types,
    admin_webhook_acts,
    admin_webhooks,
    admin_workspace,
)

_WEBHOOK = "<uuid:webhook_id>"
_webhooks: list[URLPattern | URLResolver] = [
    path("", admin_webhooks.webhooks, name="webhooks"),
    path("new", admin_webhooks.new_webhook, name="new-webhook"),
    path(f"{_WEBHOOK}/", admin_webhooks.webhook, name="webhook"),
    path(f"{_WEBHOOK}/edit", admin_webhooks.edit_webhook, name="edit-webhook"),
    path(f"{_WEBHOOK}/switch", admin_webhook_acts.switch_webhook, name="switch-webhook"),
    path(f"{_WEBHOOK}/test", admin_webhook_acts.test_webhook, name="test-webhook"),
    path(f"{_WEBHOOK}/secret", admin_webhook_acts.webhook_secret, name="webhook-secret-page"),
    path(f"{_WEBHOOK}/replay", admin_webhook_acts.replay_webhook, name="replay-webhook"),
    path(f"{_WEBHOOK}/remove", admin_webhook_acts.delete_webhook, name="remove-webhook"),
]

_holds: list[URLPattern | URLResolver] = [
    path("", admin_holds.holds, name="holds"),
    path("new/", admin_hold_place.matter, name="place-hold"),
    path("new/scope/", admin_hold_place.scope, name="place-hold-scope"),
    path("new/preview/", admin_hold_place.preview, name="place-hold-preview"),
    path("<uuid:hold_id>/", admin_holds.hold, name="hold"),
    path("<uuid:hold_id>/review", admin_holds.review, name="review-hold"),
    path("<uuid:hold_id>/release/", admin_hold_release.ask_release, name="ask-release"),
    path("<uuid:hold_id>/approve/", admin_hold_release.approve, name="approve-release"),
    path("<uuid:hold_id>/withdraw", admin_hold_release.withdraw, name="withdraw-release"),
]

_retention: list[URLPattern | URLResolver] = [
    path("", admin_retention.retention, name="retention"),
    path("rule/", admin_retention.rule, name="retention-rule"),
    path("rule/preview/", admin_retention.preview, name="retention-preview"),
]

_sweeps: list[URLPattern | URLResolver] = [
    path("", admin_sweeps.sweeps, name="sweeps"),
    path("dry-run", admin_sweeps.dry_run, name="dry-run"),
    path("switch", admin_sweeps.switch, name="switch-sweeping"),
    path("<uuid:sweep_id>/", admin_sweeps.sweep, name="sweep"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", admin_overview.overview, name="admin-overview"),
    path("workspace/", admin_workspace.workspace, name="workspace"),
    path("workspace/close", admin_close.close, name="close-workspace"),
    path("keys/", admin_keys.keys, name="api-keys"),
    path("keys/new", admin_keys.new_key, name="new-api-key"),
    path("keys/<slug:prefix>/", admin_keys.key, name="api-key"),
    path("keys/<slug:prefix>/quota", admin_keys.quota, name="api-key-quota"),
    path("keys/<slug:prefix>/rotate", admin_keys.rotate, name="rotate-api-key"),
    path("keys/<slug:prefix>/revoke", admin_keys.revoke, name="revoke-api-key"),
    path("members/", admin_members.members, name="members"),
    path("members/new", admin_members.new_member, name="new-member"),
    path("members/<uuid:member_id>/", admin_members.member, name="member"),
    path("members/<uuid:member_id>/end", admin_members.end, name="end-member"),
    path("holds/", include(_holds)),
    path("retention/", include(_retention)),
    path("sweeps/", include(_sweeps)),
    path("erasures/", admin_erasures.erasures, name="erasures"),
    path("erasures/new", admin_erasures.new_erasure, name="new-erasure"),
    path("erasures/ledger", admin_erasures.ledger, name="erasure-ledger"),
    path("erasures/<uuid:erasure_id>/", admin_erasures.erasure, name="erasure"),
    path("erasures/<uuid:erasure_id>/resume", admin_erasures.resume, name="resume-erasure"),
    path("erasures/<uuid:erasure_id>/cancel", admin_erasures.cancel, name="cancel-erasure"),
    path("types/", admin_types.types, name="fact-types"),
    path("types/new", admin_types.new_type, name="new-fact-type"),
    path("types/<any_id:name>/", admin_types.fact_type, name="fact-type"),
    path("sources/", admin_sources.sources, name="policy-sources"),
    path("sources/new", admin_sources.new_source, name="new-policy-source"),
    path("sources/<uuid:source_id>/", admin_sources.source, name="policy-source"),
    path("sources/<uuid:source_id>/try", admin_sources.try_now, name="try-policy-source"),
    path("webhooks/", include(_webhooks)),
    path("routes/", admin_routes.routes, name="correction-routes"),
    path("routes/new", admin_routes.new_route, name="new-correction-route"),
    path("routes/<any_id:name>/", admin_routes.route, name="correction-route"),
]
