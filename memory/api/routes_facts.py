"""Routes of facts."""

from django.urls import path

from memory.api.views import facts

urlpatterns = [
    path("memory/facts", facts.Facts.as_view(), name="facts"),
    path(
        "memory/facts/<id:fact_id>/supersede", facts.FactSupersede.as_view(), name="fact-supersede"
    ),
    path("memory/facts/<id:fact_id>/verify", facts.FactVerify.as_view(), name="fact-verify"),
    path(
        "memory/facts/<id:fact_id>/revisions", facts.FactRevisions.as_view(), name="fact-revisions"
    ),
    path("memory/facts/<id:fact_id>", facts.Fact.as_view(), name="fact"),
]
