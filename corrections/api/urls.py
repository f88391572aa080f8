"""Routes of the binding API that are about people's pages, paths relative to `/v1/`."""

from django.urls import path

from corrections.api import page_links

urlpatterns = [path("memory/page-links", page_links.PageLinks.as_view(), name="page-links")]
