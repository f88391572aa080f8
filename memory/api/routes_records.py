"""Routes of memory records. Ids may hold slashes, so routes with a suffix come before the bare one."""

from django.urls import path

from memory.api.views import recall, records

urlpatterns = [
    path("memory/recall", recall.Recall.as_view(), name="recall"),
    path("memory/records", records.Records.as_view(), name="records"),
    path("memory/records/<id:record_id>", records.OneRecord.as_view(), name="record"),
]
