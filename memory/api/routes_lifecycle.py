"""Routes of retention, legal holds and erasures: the admin's work on how long things stay."""

from django.urls import path

from memory.api.views import erasures, holds, retention

_ERASURE = "memory/erasures/<id:erasure_id>"
_SWEEP = "memory/retention/sweeps/<id:sweep_id>"
_HOLD = "memory/legal-holds/<id:hold_id>"

urlpatterns = [
    path("memory/retention", retention.Retention.as_view(), name="retention"),
    path(
        "memory/retention/simulate",
        retention.RetentionSimulation.as_view(),
        name="retention-simulate",
    ),
    path("memory/retention/sweeps", retention.Sweeps.as_view(), name="sweeps"),
    path(f"{_SWEEP}/evidence", retention.SweepEvidence.as_view(), name="sweep-evidence"),
    path(_SWEEP, retention.Sweep.as_view(), name="sweep"),
    path(
        "memory/retention/facts/<id:fact_id>",
        retention.FactRetention.as_view(),
        name="fact-retention",
    ),
    path("memory/legal-holds", holds.LegalHolds.as_view(), name="holds"),
    path("memory/legal-holds/preview", holds.LegalHoldPreview.as_view(), name="hold-preview"),
    path(f"{_HOLD}/review", holds.LegalHoldReview.as_view(), name="hold-review"),
    path(f"{_HOLD}/request-release", holds.LegalHoldRequest.as_view(), name="hold-request"),
    path(f"{_HOLD}/approve-release", holds.LegalHoldApproval.as_view(), name="hold-approve"),
    path(f"{_HOLD}/withdraw-release", holds.LegalHoldWithdrawal.as_view(), name="hold-withdraw"),
    path("memory/erasures", erasures.Erasures.as_view(), name="erasures"),
    path("memory/erasures/preview", erasures.ErasurePreview.as_view(), name="erasures-preview"),
    path("memory/erasures/export", erasures.ErasureExport.as_view(), name="erasures-export"),
    path("memory/erasures/replay", erasures.ErasureReplay.as_view(), name="erasures-replay"),
    path(f"{_ERASURE}/resume", erasures.ErasureResume.as_view(), name="erasure-resume"),
    path(f"{_ERASURE}/cancel", erasures.ErasureCancel.as_view(), name="erasure-cancel"),
    path(_ERASURE, erasures.Erasure.as_view(), name="erasure"),
    path(_HOLD, holds.LegalHold.as_view(), name="hold"),
]
