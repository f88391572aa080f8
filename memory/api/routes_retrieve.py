"""The route of retrieval."""

from django.urls import path

from memory.api.views import retrieve

urlpatterns = [path("memory/retrieve", retrieve.Retrieve.as_view(), name="retrieve")]
