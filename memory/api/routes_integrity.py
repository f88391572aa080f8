"""Routes of seals, checkpoints and proofs."""

from django.urls import path

from memory.api.views import integrity, verifications

urlpatterns = [
    path("memory/checkpoints", integrity.Checkpoints.as_view(), name="checkpoints"),
    path(
        "memory/checkpoints/<id:earlier>/consistency/<id:later>",
        integrity.Consistency.as_view(),
        name="checkpoint-consistency",
    ),
    # After the one above: an id may hold slashes.
    path("memory/checkpoints/<id:size>", integrity.OneCheckpoint.as_view(), name="checkpoint"),
    path("memory/verifications", verifications.Verifications.as_view(), name="verifications"),
    path(
        "memory/verifications/<id:verification_id>/cancel",
        verifications.VerificationCancel.as_view(),
        name="verification-cancel",
    ),
    path(
        "memory/verifications/<id:verification_id>",
        verifications.Verification.as_view(),
        name="verification",
    ),
    path("memory/runs/<id:run_id>/export", integrity.RunExport.as_view(), name="run-export"),
    path("memory/runs/<id:run_id>/proof", integrity.RunProofView.as_view(), name="run-proof"),
]
