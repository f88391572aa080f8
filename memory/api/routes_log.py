"""Routes of the run log."""

from django.urls import path

from memory.api.views import log, verify

urlpatterns = [
    path("memory/runs", log.Runs.as_view(), name="runs"),
    path("memory/runs/<id:run_id>/log", log.RunLog.as_view(), name="run-log"),
    path("memory/runs/<id:run_id>/log/batch", log.RunLogBatch.as_view(), name="run-log-batch"),
    path("memory/runs/<id:run_id>/verify", verify.RunVerify.as_view(), name="run-verify"),
    path("memory/log/<id:entry_id>", log.Entry.as_view(), name="log-entry"),
]
