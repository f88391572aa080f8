"""Where a browser says that a page asked for something that its policy forbids: `/csp-reports`, counted by rule.

Anybody may send a report, so nothing of it is kept but a rule's name and the pattern of the page's address, both from lists that
are closed. Several at once from one page are one each; what is no report is refused.
"""

from typing import Any
from urllib.parse import urlsplit

import structlog
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from prometheus_client import Counter
from rest_framework.views import APIView

from memory import admission
from memory.api.errors import domain_error_of, respond
from memory.errors import BadInput, MethodNotAllowed

log = structlog.get_logger("kindmem.pages")
PATH = "/csp-reports"
MOST_BYTES = 16_384
OTHER = "other"
DIRECTIVES = frozenset(
    {
        *("default-src", "script-src", "script-src-elem", "script-src-attr", "style-src"),
        *("style-src-elem", "style-src-attr", "img-src", "font-src", "connect-src", "media-src"),
        *("object-src", "frame-src", "child-src", "worker-src", "manifest-src", "form-action"),
        *("base-uri", "frame-ancestors"),
    }
)
_REPORTS = Counter(
    "kindmem_csp_reports", "Reports of browsers that a page broke its policy.", ["directive"]
)


class CspReports(APIView):
    """204 for a report, whatever it says. A browser sends it by itself, so there is no form's token."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return respond(MethodNotAllowed(allowed=["POST"]), request)
        return _taken(request)


def _taken(request: HttpRequest) -> HttpResponse:
    try:
        told = admission.admit(request.read(MOST_BYTES + 1), max_bytes=MOST_BYTES)
        report = told.get("csp-report") if isinstance(told, dict) else None
        if not isinstance(report, dict):
            raise BadInput.at("/csp-report", "is required")
    except OSError:
        return respond(BadInput.at("", "did not arrive whole"), request)
    except (admission.BadInput, admission.TooLarge, BadInput) as error:
        return respond(domain_error_of(error), request)
    directive = _directive_of(report)
    _REPORTS.labels(directive).inc()
    log.warning("policy_violated", directive=directive, route=_route_of(report))
    return HttpResponse(status=204)


def _directive_of(report: dict[str, Any]) -> str:
    said = report.get("effective-directive") or report.get("violated-directive") or ""
    name = said.split(" ")[0] if isinstance(said, str) else ""
    return name if name in DIRECTIVES else OTHER


def _route_of(report: dict[str, Any]) -> str:
    """The pattern of the page's address, with no id in it; empty for what is no page of ours."""
    address = report.get("document-uri")
    try:
        return resolve(urlsplit(address).path).route if isinstance(address, str) else ""
    except (Resolver404, ValueError):
        return ""
