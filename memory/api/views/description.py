"""The API description and the page that shows it: read only, whatever kind of answer the client asks for."""

from typing import Any

from csp.decorators import csp_update
from django.http import HttpResponse
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.negotiation import BaseContentNegotiation

from memory.api.errors import respond
from memory.errors import MethodNotAllowed

_METHODS = ["get", "head"]


class _AsItIs(BaseContentNegotiation):
    """Each of the two has one form."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


def _refused(request: Any) -> HttpResponse:
    return respond(MethodNotAllowed(allowed=[name.upper() for name in _METHODS]), request)


class Description(SpectacularJSONAPIView):
    http_method_names = _METHODS
    content_negotiation_class = _AsItIs

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return _refused(request)


@method_decorator(csp_update({"style-src": ["'unsafe-inline'"]}), name="dispatch")
class DocsPage(SpectacularSwaggerSplitView):
    """Swagger's page writes its styles into itself; its scripts are files like ours."""

    http_method_names = _METHODS
    content_negotiation_class = _AsItIs

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return _refused(request)
