"""An address that takes a form alone: whoever opens it, such as after signing in, is led to the page that has the form."""

import functools
from typing import Any

from django.http import HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from corrections.htmx import unkept
from corrections.visit import PageView


def post_only(page: str, *parts: str) -> Any:
    """page: the name of the page that has the form; parts: what its address holds, parts of this one's or words of its own."""

    def decorate(view: PageView) -> PageView:
        @functools.wraps(view)
        def answer(request: HttpRequest, tenant: str, **path: Any) -> HttpResponseBase:
            if request.method in ("GET", "HEAD"):
                place = [path.get(part, part) for part in parts]
                return unkept(HttpResponseRedirect(reverse(page, args=[tenant, *place])))
            if request.method != "POST":
                return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
            return view(request, tenant=tenant, **path)

        return answer

    return decorate
