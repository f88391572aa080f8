"""Routes of facts and of the registry of their types."""

from django.urls import path

from memory.api.views import fact_types, facts

urlpatterns = [
    path("memory/facts", facts.Facts.as_view(), name="facts"),
    path(
        "memory/facts/<id:fact_id>/supersede", facts.FactSupersede.as_view(), name="fact-supersede"
    ),
    path("memory/facts/<id:fact_id>/verify", facts.FactVerify.as_view(), name="fact-verify"),
    path(
        "memory/facts/<id:fact_id>/revisions", facts.FactRevisions.as_view(), name="fact-revisions"
    ),
    path("memory/facts/<id:fact_id>/refresh", facts.FactRefresh.as_view(), name="fact-refresh"),
    path("memory/types", fact_types.FactTypes.as_view(), name="fact-types"),
    path("memory/types/<id:type>", fact_types.FactType.as_view(), name="fact-type"),
    path("memory/facts/<id:fact_id>", facts.Fact.as_view(), name="fact"),
]
