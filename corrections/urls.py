"""The addresses of pages. Each tenant's are under `/t/<tenant>/`; ids are one segment each."""

from django.urls import URLPattern, URLResolver, include, path

from corrections import converters  # noqa: F401  # registers `any_id` before routes use it
from corrections.views import (
    audit_access,
    audit_entry,
    audit_evidence,
    audit_export,
    audit_health,
    audit_jobs,
    audit_record,
    audit_runs,
    audit_verify,
    entrance,
    me_acts,
    me_downloads,
    me_fact_acts,
    me_facts,
    me_fix,
    me_memory,
    me_receipts,
    me_switch,
    register,
    settings,
)

_audit: list[URLPattern | URLResolver] = [
    path("health/", audit_health.health, name="chain-health"),
    path("runs/", audit_runs.runs, name="runs"),
    path("runs/newer/", audit_runs.newer_runs, name="newer-runs"),
    path("run/<any_id:run_id>/", audit_runs.run, name="run"),
    path("run/<any_id:run_id>/newer/", audit_runs.newer_entries, name="newer-entries"),
    path("run/<any_id:run_id>/verify/", audit_verify.verify, name="verify"),
    path("run/<any_id:run_id>/export/", audit_export.export, name="export"),
    path("run/<any_id:run_id>/evidence/", audit_evidence.evidence, name="evidence"),
    path("evidence/", audit_evidence.exports, name="evidence-exports"),
    path("e/<any_id:run_id>/<int:sequence>/", audit_entry.entry, name="entry"),
    path("entry/<any_id:entry_id>/", audit_entry.entry_by_its_id, name="entry-by-id"),
    path("verifications/", audit_verify.results, name="verifications"),
    path("verifications/<uuid:result_id>/", audit_verify.result, name="verification"),
    path("verifications/tenant/", audit_jobs.verify_tenant, name="verify-tenant"),
    path("verifications/jobs/<uuid:job_id>/", audit_jobs.job, name="verification-job"),
    path("verifications/jobs/<uuid:job_id>/cancel", audit_jobs.cancel, name="cancel-verification"),
    path("record/<any_id:record_id>/", audit_record.record, name="audit-record"),
    path("access/", audit_access.access_log, name="access-log"),
]

_tenant: list[URLPattern | URLResolver] = [
    path("", entrance.home, name="home"),
    path("proved/", entrance.proved, name="proved"),
    path("link/<slug:token>/", entrance.page_link, name="page-link"),
    path("memory/", me_memory.memory_list, name="memory-list"),
    path("switch", me_switch.switch, name="switch"),
    path("memory/<any_id:record_id>/", me_memory.memory_detail, name="memory"),
    path("memory/<any_id:record_id>/confirm", me_acts.confirm, name="confirm"),
    path("memory/<any_id:record_id>/widen", me_fix.widen, name="widen"),
    path(
        "memory/<any_id:record_id>/correct/<any_id:route>",
        me_acts.correct_by_route,
        name="correct",
    ),
    path("facts/", me_facts.facts, name="my-facts"),
    path("facts/<any_id:fact_id>/", me_facts.fact, name="my-fact"),
    path("facts/<any_id:fact_id>/confirm", me_fact_acts.confirm_fact, name="confirm-fact"),
    path("facts/<any_id:fact_id>/remove", me_fact_acts.remove_fact, name="remove-fact"),
    path("downloads/", me_downloads.downloads, name="downloads"),
    path("receipts/", me_receipts.receipts, name="my-corrections"),
    path("receipts/<any_id:number>/", me_receipts.receipt, name="receipt"),
    path("receipts/<any_id:number>/undo", me_acts.undo, name="undo"),
    path("register/", register.what_ended, name="register"),
    path("admin/", include("corrections.urls_admin")),
    path("admin/", include("corrections.urls_trust")),
    path("settings/", settings.settings, name="settings"),
    path("audit/", include(_audit)),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", entrance.start, name="start"),
    path("tenants/", entrance.tenants, name="tenants"),
    path("t/<slug:tenant>/", include(_tenant)),
]
