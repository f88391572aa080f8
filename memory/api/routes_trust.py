"""Routes of the admin's work on what is not trusted: reviews and quarantines."""

from django.urls import path

from memory.api.views import quarantines, reviews

_REVIEW = "memory/reviews/<slug:kind>/<id:review_id>"
_QUARANTINE = "memory/quarantines/<id:quarantine_id>"

urlpatterns = [
    path("memory/reviews", reviews.Reviews.as_view(), name="reviews"),
    path("memory/reviews/decide", reviews.ReviewDecisions.as_view(), name="reviews-decide"),
    path(f"{_REVIEW}/approve", reviews.ReviewApproval.as_view(), name="review-approve"),
    path(f"{_REVIEW}/reject", reviews.ReviewRejection.as_view(), name="review-reject"),
    path(_REVIEW, reviews.Review.as_view(), name="review"),
    path("memory/quarantines", quarantines.Quarantines.as_view(), name="quarantines"),
    path(
        "memory/quarantines/preview",
        quarantines.QuarantinePreview.as_view(),
        name="quarantine-preview",
    ),
    path(f"{_QUARANTINE}/lift", quarantines.QuarantineLift.as_view(), name="quarantine-lift"),
    path(
        f"{_QUARANTINE}/roll-back",
        quarantines.QuarantineRollBack.as_view(),
        name="quarantine-roll-back",
    ),
    path(_QUARANTINE, quarantines.Quarantine.as_view(), name="quarantine"),
]
