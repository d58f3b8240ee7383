"""``run_http``, ``wsgi_app`` and the like: the part of ``Server`` that serves HTTP. Floor 4."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from raxol_sync._deadline import Deadline
from raxol_sync.hooks import check_hook
from raxol_sync.protocol.wire import MAX_MESSAGE_BYTES
from raxol_sync.registry import Registry
from raxol_sync.server.app import App
from raxol_sync.server.decorators import Decorators
from raxol_sync.server.dispatch import Dispatch
from raxol_sync.server.engine import CLOSED, Engine
from raxol_sync.server.http.guard import LOOPBACK
from raxol_sync.server.http.options import (
    KEEP_ALIVE,
    MAX_SESSIONS,
    MAX_STREAMS,
    SESSION_IDLE,
    Authenticate,
)
from raxol_sync.server.http.options import options as check_options

if TYPE_CHECKING:
    import ssl

    from raxol_sync.server.http.app import Application, WSGIApp
    from raxol_sync.server.http.serving import HTTPService

_MAX_CONNECTIONS = 2048


class Networked(Decorators):
    """The half of ``Server`` that serves HTTP: by itself, or under a WSGI server. Thread-safe."""

    name: str
    close: Callable[..., None]
    authorization_configured: Callable[[], bool]
    read_authorization_configured: Callable[[], bool]
    require_authorizer: Callable[[], None]
    _engine: Engine
    _app: App
    _dispatch: Dispatch

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        # Guards: _services, _ended. Leaf.
        self._services_lock = threading.Lock()
        self._services: set[HTTPService] = set()
        self._ended = False

    def start_http(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        path: str = "/mcp",
        ssl_context: ssl.SSLContext | None = None,
        access_log: bool | Callable[[str], object] = False,
        grace: float = 5.0,
        # Limits
        max_body_bytes: int = MAX_MESSAGE_BYTES,
        max_streams: int = MAX_STREAMS,
        max_connections: int = _MAX_CONNECTIONS,
        max_threads: int | None = None,
        **options: Any,
    ) -> HTTPService:
        """Serve HTTP on threads of its own, and return at once: for tests, notebooks, programs.

        Args:
            host: where to listen: a name or an address; empty for all addresses.
            port: 0 takes a free one, which ``HTTPService.port`` tells.
            path: the endpoint's path.
            ssl_context: for HTTPS: an ``ssl.SSLContext`` with a certificate loaded.
            access_log: one line for each request: ``True`` to stderr, or to a callable.
            grace: the seconds that ``HTTPService.stop`` takes at most.
            max_body_bytes: the longest request body, in bytes.
            max_streams: how many event streams are open at once.
            max_connections: how many connections are open at once, idle ones included.
            max_threads: how many requests run at once, streams apart; by default enough for all
                callbacks and 64 more.
            options: those of ``wsgi_app``: ``require_authorization``, ``authenticate`` and so on.
                ``allowed_hosts`` is by default loopback's names and ``host``, or any address where
                that is all of them.

        Raises:
            DeploymentError, SensitiveToolError, TypeError, ValueError: as ``wsgi_app``.
            OSError: the address cannot be had.
            RuntimeError: the server is closed.
        """
        from raxol_sync.server.http.serving import names_of, start

        if options.get("allowed_hosts") is None:
            options["allowed_hosts"] = [*LOOPBACK, *names_of(host)]
        app = self.wsgi_app(path, max_body_bytes=max_body_bytes, max_streams=max_streams, **options)
        service = start(
            app,
            host,
            port,
            path,
            max_body_bytes=max_body_bytes,
            max_streams=max_streams,
            max_connections=max_connections,
            max_threads=max_threads,
            callbacks=self._engine.max_in_flight,
            ssl_context=ssl_context,
            grace=grace,
            access_log=access_log,
        )
        with self._services_lock:
            late = self._ended
            if not late:
                self._services.add(service)
        if late:
            service.stop(0)
            raise RuntimeError(CLOSED)
        service.on_stopped(lambda: self._forget(service))
        return service

    def run_http(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        access_log: bool | Callable[[str], object] = True,
        ready: Callable[[HTTPService], object] | None = None,
        **options: Any,
    ) -> None:
        """Serve HTTP until SIGINT or SIGTERM comes or the server is closed; then close.

        The end: no new connections; streams are ended; calls in flight are answered within
        ``grace`` seconds, or broken off.

        Args:
            host: where to listen.
            port: 0 takes a free one.
            access_log: one line for each request: ``True`` to stderr, where the first line then
                tells the URL; or to a callable.
            ready: called with the service once it listens.
            options: those of ``start_http``.

        Raises:
            The same as ``start_http``.
        """
        from raxol_sync.server.http.serving import run

        check_hook("ready", ready)
        with self.start_http(host, port, access_log=access_log, **options) as service:
            run(service, self.name, quiet=access_log is not True, ready=ready)
        self.close()

    def wsgi_app(
        self,
        path: str = "/mcp",
        *,
        # Who is let in
        require_authorization: bool | None = None,
        authenticate: Authenticate | None = None,
        www_authenticate: str = "Bearer",
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] | None = None,
        # Limits
        max_body_bytes: int = MAX_MESSAGE_BYTES,
        max_sessions: int = MAX_SESSIONS,
        session_idle_timeout: float | None = SESSION_IDLE,
        max_streams: int = MAX_STREAMS,
        keep_alive: float = KEEP_ALIVE,
    ) -> Application:
        """Return a WSGI application that serves ``path``, ``/sse``, ``/messages``, ``/health``.

        It serves every revision at once, under any WSGI server; the first message decides.

        Args:
            path: the endpoint's path.
            require_authorization: ``False`` lets in everybody who can reach it; ``None``: the
                environment's ``RAXOL_SYNC_REQUIRE_AUTHORIZATION``, by default true (S29).
            authenticate: called with each request's WSGI environ; returns who it comes from, a
                value that is hashable and always the same for the same client, or ``None`` (also
                ``False``, ``""`` or a user object that is not authenticated) for a stranger, who
                gets 401.
            www_authenticate: what a 401 says in that header.
            allowed_hosts: by which names this server is reached, such as ``mcp.example.com``; by
                default the loopback ones only. ``*``: any.
            allowed_origins: whose pages may call it from a browser, such as
                ``https://example.com``; by default its own. ``*``: any.
            max_body_bytes: the longest request body, in bytes.
            max_sessions: how many legacy sessions there are at once; 0: none are made, and legacy
                clients are served without.
            session_idle_timeout: after how many seconds an unused session ends. ``None``: never.
            max_streams: how many event streams are open at once.
            keep_alive: after how many seconds of silence a stream gets a comment.

        Raises:
            DeploymentError: nobody said who may use it; the text shows the lines that fix that.
            SensitiveToolError: there are sensitive tools and no authorizer.
            TypeError, ValueError: an option is not what it must be.
            RuntimeError: the server is closed.
        """
        from raxol_sync.server.http.app import application

        settings = check_options(
            path,
            authenticate=authenticate,
            www_authenticate=www_authenticate,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            max_body_bytes=max_body_bytes,
            max_sessions=max_sessions,
            session_idle_timeout=session_idle_timeout,
            max_streams=max_streams,
            keep_alive=keep_alive,
        )
        return application(self, self._app, self._dispatch, settings, require_authorization)

    def mount(
        self,
        wsgi_app: WSGIApp,
        path: str = "/mcp",
        *,
        require_authorization: bool | None = None,
        **options: Any,
    ) -> Application:
        """Return a WSGI application: ``path`` and below are this server's, the rest ``wsgi_app``'s.

        Options and errors are those of ``wsgi_app``; ``ValueError`` too where another server is
        mounted at that path.
        """
        from raxol_sync.server.http.app import application

        if not callable(wsgi_app):
            raise TypeError(
                "mount takes the WSGI application that gets the other paths, "
                f"not {type(wsgi_app).__name__}"
            )
        check_hook("the application (ASGI?)", wsgi_app, generators=True)
        known = check_options.__kwdefaults__ or {}
        unknown = [name for name in options if name not in known]
        if unknown:
            names = ", ".join(["require_authorization", *known])
            raise TypeError(f"mount has no option {unknown[0]!r}; it has {names}")
        settings = check_options(path, **options)
        return application(
            self, self._app, self._dispatch, settings, require_authorization, inside=wsgi_app
        )

    def _forget(self, service: HTTPService) -> None:
        with self._services_lock:
            self._services.discard(service)

    def _stop_services(self, deadline: Deadline) -> None:
        """End all that ``start_http`` has begun; calls are settled already."""
        with self._services_lock:
            self._ended = True
            services = list(self._services)
        for service in services:
            service.stop(deadline.left())
