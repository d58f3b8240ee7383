"""``run_http`` and ``start_http``: the part of ``Server`` that puts it on a port. Floor 4."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from raxol_sync._deadline import Deadline
from raxol_sync.protocol.wire import MAX_MESSAGE_BYTES
from raxol_sync.registry import Registry
from raxol_sync.server.decorators import Decorators
from raxol_sync.server.engine import Engine
from raxol_sync.server.http.guard import LOOPBACK
from raxol_sync.server.http.options import MAX_STREAMS

if TYPE_CHECKING:
    import ssl

    from raxol_sync.server.http.app import Application
    from raxol_sync.server.http.serving import HTTPService

_MAX_CONNECTIONS = 2048


class Networked(Decorators):
    """What ``Server`` has for serving over HTTP by itself."""

    name: str
    wsgi_app: Callable[..., Application]
    close: Callable[..., None]
    _engine: Engine

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
            raise RuntimeError("the server is closed")
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

        with self.start_http(host, port, access_log=access_log, **options) as service:
            run(service, self.name, quiet=access_log is not True, ready=ready)
        self.close()

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
