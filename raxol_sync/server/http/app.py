"""The WSGI application: which request goes where, and what guards it. Floor 3. PEP 3333."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from raxol_sync.errors import INTERNAL_ERROR
from raxol_sync.server.app import App
from raxol_sync.server.dispatch import Dispatch
from raxol_sync.server.engine import CLOSED
from raxol_sync.server.http import auth, cors, guard, status
from raxol_sync.server.http.deployment import Deployment, Guarded
from raxol_sync.server.http.gets import delete, get, not_allowed
from raxol_sync.server.http.options import Options
from raxol_sync.server.http.posts import post
from raxol_sync.server.http.replies import (
    Answer,
    Header,
    Refused,
    Reply,
    StartResponse,
    Stream,
    json_reply,
    refusal,
)
from raxol_sync.server.http.service import Service
from raxol_sync.server.http.sse import open_stream, take_message

Environ = dict[str, Any]
Handler = Callable[[Service, Environ, object], Answer]
WSGIApp = Callable[[Environ, StartResponse], Iterable[bytes]]
_log = logging.getLogger("raxol_sync.server")
_PASSED = "raxol_sync.passed_on"  # in the environ: how often, by us and by others like us
_MOST_MOUNTS = 64

_ENDPOINT: dict[str, Handler] = {"POST": post, "GET": get, "DELETE": delete}
_OLDER: dict[str, dict[str, Handler]] = {
    "/sse": {"GET": open_stream},
    "/messages": {"POST": take_message},
}


class Application:
    """A server as a WSGI application. Thread-safe; made by ``Server.wsgi_app``."""

    def __init__(self, server: object, service: Service, *, inside: WSGIApp | None = None) -> None:
        """``inside``: the application that it is mounted in, which gets all other paths."""
        self._server = server  # which must live as long as what it serves
        self._service = service
        options = service.options
        self._inside = inside
        root = options.path if inside is not None else ""
        self._root = root
        endpoint = "" if inside is not None else options.path
        self._places = {**_OLDER, endpoint: _ENDPOINT}

    def __repr__(self) -> str:
        return f"<MCP application at {self._service.options.path or '/'}>"

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request; see PEP 3333."""
        path = environ.get("PATH_INFO") or ""
        if self._inside is not None:
            below = path[len(self._root) :]
            if not path.startswith(self._root) or (below and below[0] != "/"):
                return self._pass_on(self._inside, environ, start_response)
            environ["SCRIPT_NAME"] = (environ.get("SCRIPT_NAME") or "") + self._root
            environ["PATH_INFO"] = path = below
        try:
            answer = self._answer(environ, path.rstrip("/"))
        except Refused as refused:
            answer = refused.reply
        except Exception:  # a fault of ours: this request fails, others go on
            _log.exception("! an HTTP request failed")
            answer = refusal(500, "internal error", code=INTERNAL_ERROR)
        more: list[Header] = []
        if "HTTP_ORIGIN" in environ:
            more = cors.headers_for(self._service.options.names, environ)
        if type(answer) is Reply:
            found = [*answer.headers, *more, ("Content-Length", str(len(answer.body)))]
            if answer.status == 204:
                found.pop()
            start_response(status.LINES[answer.status], found)
            return [answer.body] if environ["REQUEST_METHOD"] != "HEAD" else []
        assert isinstance(answer, Stream)  # there is nothing else
        try:
            start_response(status.LINES[200], [*answer.headers, *more])
        except BaseException:  # the host's: it will not close what it does not get
            answer.chunks.close()
            raise
        return answer.chunks

    def _pass_on(
        self, inside: WSGIApp, environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Let the application around us answer.

        Raises:
            RuntimeError: it asks us again and again.
        """
        times = environ[_PASSED] = environ.get(_PASSED, 0) + 1
        if times > _MOST_MOUNTS:
            raise RuntimeError(
                "this application is mounted in itself: in Flask it is "
                "app.wsgi_app = server.mount(app.wsgi_app, ...), with app.wsgi_app in both places"
            )
        return inside(environ, start_response)

    def shadows(self, path: str) -> bool:
        """Return whether requests for a path would come here, or to one that it is mounted in."""
        if self._inside is None:
            return False
        inner = self._inside
        return self._root == path or (isinstance(inner, Application) and inner.shadows(path))

    def _answer(self, environ: Environ, path: str) -> Answer:
        service = self._service
        method = environ["REQUEST_METHOD"]
        if path == "/health":
            return self._health(method)
        handlers = self._places.get(path)
        if handlers is None:
            return refusal(404, "there is nothing here")
        if service.closed or service.engine.closed:
            return refusal(503, service.engine.refused().message, code=INTERNAL_ERROR)
        problem = guard.problem_of(service.options.names, environ)
        if problem is not None:
            service.turned_away(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"), problem[1])
            return refusal(*problem)
        if method == "OPTIONS":  # before authenticate: a browser asks without credentials
            reply = cors.preflight(service.options.names, environ, ", ".join(handlers))
            if reply is not None:
                return reply
        principal = auth.principal_of(service.options, environ)
        handler = handlers.get(method)
        if handler is None:
            return not_allowed("this method is not for here", ", ".join(handlers))
        return handler(service, environ, principal)

    def _health(self, method: str) -> Reply:
        if method not in ("GET", "HEAD"):
            return not_allowed("this method is not for here", "GET, HEAD")
        if self._service.closed or self._service.engine.closed:
            return json_reply(503, {"status": "closed"})
        return json_reply(200, {"status": "ok"})

    def close(self) -> None:
        """Take no more requests; end all sessions and streams. Calls that run are answered still.

        From any thread, and more than once. ``Server.close`` ends those too.
        """
        self._service.close()


def application(
    server: Guarded,
    app: App,
    dispatch: Dispatch,
    options: Options,
    require_authorization: bool | None,
    *,
    inside: WSGIApp | None = None,
) -> Application:
    """Return a server's application, if the server may go on a network (rows S29, S32).

    Raises:
        DeploymentError, SensitiveToolError: it may not.
        RuntimeError: it is closed.
        ValueError: ``inside`` would get no paths, or another server has the path.
    """
    if app.engine.closed:
        raise RuntimeError(CLOSED)
    if inside is not None and not options.path:
        raise ValueError("mount needs a path below the root, such as '/mcp'; wsgi_app has the root")
    if isinstance(inside, Application) and inside.shadows(options.path):
        raise ValueError(f"another server is mounted at {options.path} already: take another path")
    server.require_authorizer()
    Deployment.of(server, require_authorization).check(
        undecided=app.authorization.authorizer is not None,
        authenticates=options.authenticate is not None,
    )
    service = Service(dispatch, app.engine, app.registry, options)
    return Application(server, service, inside=inside)
