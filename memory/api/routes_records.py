"""Routes of memory records. Ids may hold slashes, so the longest path comes first and the bare one last."""

from django.urls import path

from memory.api.views import policy_sources, recall, record_acts, records, routes

urlpatterns = [
    path("memory/recall", recall.Recall.as_view(), name="recall"),
    path("memory/records", records.Records.as_view(), name="records"),
    path("memory/correct", record_acts.Correct.as_view(), name="correct"),
    path("memory/events", record_acts.Events.as_view(), name="events"),
    path(
        "memory/records/<id:record_id>/routes/<id:name>",
        routes.RouteOfRecord.as_view(),
        name="record-route",
    ),
    path(
        "memory/records/<id:record_id>/correct",
        record_acts.CorrectRecord.as_view(),
        name="record-correct",
    ),
    path(
        "memory/records/<id:record_id>/confirm",
        record_acts.Confirm.as_view(),
        name="record-confirm",
    ),
    path(
        "memory/records/<id:record_id>/forget", record_acts.Forget.as_view(), name="record-forget"
    ),
    path(
        "memory/records/<id:record_id>/explain",
        record_acts.Explain.as_view(),
        name="record-explain",
    ),
    path(
        "memory/records/<id:record_id>/history",
        record_acts.History.as_view(),
        name="record-history",
    ),
    path("memory/routes", routes.Routes.as_view(), name="routes"),
    path("memory/routes/<id:name>", routes.OneRoute.as_view(), name="route"),
    path("memory/receipts/<id:number>/undo", routes.Undo.as_view(), name="undo"),
    path("memory/policy-sources", policy_sources.PolicySources.as_view(), name="policy-sources"),
    path(
        "memory/policy-sources/<id:source_id>",
        policy_sources.OnePolicySource.as_view(),
        name="policy-source",
    ),
    path("memory/records/<id:record_id>", records.OneRecord.as_view(), name="record"),
]
