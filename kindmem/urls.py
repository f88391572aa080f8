"""Where each room's routes hang."""

from django.urls import include, path

from corrections.operators import operators
from corrections.views import account
from kindmem import csp_reports, health

urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("csp-reports", csp_reports.CspReports.as_view(), name="csp-reports"),
    path("v1/", include("memory.api.urls")),
    path("v1/", include("corrections.api.urls")),
    path("account/password/reset/", account.no_letters),
    path("account/email/", account.no_letters),
    path("account/sessions/", account.sessions),
    path("account/", include("allauth.urls")),
    path("operator/", operators.urls),
    path("", include("corrections.urls")),
]
handler404 = "kindmem.failures.not_found"
handler500 = "kindmem.failures.server_error"
handler400 = "kindmem.failures.bad_request"
handler403 = "kindmem.failures.forbidden"
handler429 = "kindmem.failures.too_many"
