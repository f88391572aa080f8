"""The routes of the binding API, version 1."""

from django.urls import path

from memory.api.views import me

urlpatterns = [
    path("memory/me", me.Me.as_view(), name="me"),
]
