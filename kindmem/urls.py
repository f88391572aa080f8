"""Where each room's routes hang."""

from django.urls import include, path

urlpatterns = [
    path("v1/", include("memory.api.urls")),
]
handler404 = "kindmem.failures.not_found"
handler500 = "kindmem.failures.server_error"
handler400 = "kindmem.failures.bad_request"
handler403 = "kindmem.failures.forbidden"
