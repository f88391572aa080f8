"""Routes of memory records. Ids may hold slashes, so routes with a suffix come before the bare one."""

from django.urls import path

from memory.api.views import recall, record_acts, records

urlpatterns = [
    path("memory/recall", recall.Recall.as_view(), name="recall"),
    path("memory/records", records.Records.as_view(), name="records"),
    path("memory/correct", record_acts.Correct.as_view(), name="correct"),
    path("memory/events", record_acts.Events.as_view(), name="events"),
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
    path("memory/records/<id:record_id>", records.OneRecord.as_view(), name="record"),
]
