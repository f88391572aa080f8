"""The addresses of the admin's pages on what is not trusted, below `/t/<tenant>/admin/`."""

from django.urls import URLPattern, URLResolver, path

from corrections import converters  # noqa: F401  # registers `any_id` before routes use it
from corrections.views import admin_quarantines, admin_reviews

urlpatterns: list[URLPattern | URLResolver] = [
    path("reviews/", admin_reviews.reviews, name="reviews"),
    path("reviews/decide", admin_reviews.decide_many, name="decide-reviews"),
    path("reviews/<slug:kind>/<any_id:review_id>/", admin_reviews.review, name="review"),
    path("quarantines/", admin_quarantines.quarantines, name="quarantines"),
    path("quarantines/new", admin_quarantines.new_quarantine, name="new-quarantine"),
    path("quarantines/<uuid:quarantine_id>/", admin_quarantines.quarantine, name="quarantine"),
    path("quarantines/<uuid:quarantine_id>/lift", admin_quarantines.lift, name="lift-quarantine"),
    path(
        "quarantines/<uuid:quarantine_id>/roll-back",
        admin_quarantines.roll_back,
        name="roll-back-quarantine",
    ),
]
