"""A Django site in one file: a page of its own, and our server, once as a view and once mounted.

`site_django:application` has it below `/mounted`, and as a view at `/mcp`; as a program, this is
`manage.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import django
import hosted
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt

from raxol_sync import Context

settings.configure(
    SECRET_KEY="a key of the tests",
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    ROOT_URLCONF=__name__,
    WSGI_APPLICATION=f"{__name__}.application",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ],
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    APPEND_SLASH=False,
)
django.setup()


def front(request: HttpRequest) -> HttpResponse:
    """The site's own page."""
    return HttpResponse("the front page")


def login(request: HttpRequest, name: str) -> HttpResponse:
    """Remember who this is."""
    request.session["user"] = name
    return HttpResponse(f"welcome {name}")


def view_of(app: Callable[..., Any]) -> Any:
    """A Django view that hands its request to a WSGI application."""

    @csrf_exempt
    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        begun: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], *rest: Any) -> None:
            begun[:] = [status, headers]

        request.environ["django.request"] = request
        body = app(request.environ, start_response)
        status, headers = begun
        code, _, reason = status.partition(" ")
        response = StreamingHttpResponse(body, status=int(code), reason=reason)
        del response["Content-Type"]
        for name, value in headers:
            response[name] = value
        return response

    return view


@hosted.server.tool
def person(context: Context) -> dict[str, Any]:
    """Use what Django knows of the request: its session."""
    assert context.environ is not None
    request = context.environ.get("django.request")
    return {"user": request and request.session.get("user")}


urlpatterns = [
    path("", front),
    path("login/<name>", login),
    re_path(r"^(mcp|sse|messages|health)$", view_of(hosted.app)),
]
application = hosted.server.mount(get_wsgi_application(), "/mounted", **hosted.OPTIONS)

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
