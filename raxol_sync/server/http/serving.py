"""The embedded web server with the WSGI application: ``Server.start_http``. Floor 3."""

from __future__ import annotations

import errno
import logging
import ssl
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from raxol_sync._deadline import check_count, check_seconds
from raxol_sync.hooks import check_hook
from raxol_sync.server.ending import signals
from raxol_sync.server.http.guard import ADDRESSES

AccessLog = bool | Callable[[str], object]
_log = logging.getLogger("raxol_sync.server")

MAX_THREADS = 128
GRACE = 5.0  # seconds
_EVERYWHERE = ("", "0.0.0.0", "::")
_SPARE_THREADS = 64  # requests beside those that run callbacks: pings, lists, refusals


class Served(Protocol):
    """The application: see ``Application``."""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer one request."""

    def close(self) -> None:
        """End its sessions and streams."""


class HTTPService:
    """A server that is reached over HTTP; made by ``Server.start_http``. Thread-safe.

    As a context manager it stops at the end of the block.

    Attributes:
        host: where it listens, as given.
        port: the port; the one that was found free, where 0 was given.
        url: the endpoint, as ``http://127.0.0.1:8000/mcp``.
    """

    def __init__(
        self, web: Any, app: Served, host: str, path: str, *, tls: bool, grace: float
    ) -> None:
        self._web = web
        self._app = app
        self._grace = grace
        self._stopped = threading.Event()
        # Guards: _watchers. Leaf.
        self._lock = threading.Lock()
        self._watchers: list[Callable[[], object]] = []
        self.host = host
        self.port: int = web.port
        self.url = f"{'https' if tls else 'http'}://{_in_url(host)}:{self.port}{path}"

    def __repr__(self) -> str:
        return f"<HTTPService at {self.url}>"

    def __enter__(self) -> HTTPService:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self, grace: float | None = None) -> bool:
        """Accept nothing more, end streams, let calls in flight be answered; then break off.

        It takes at most ``grace`` seconds (by default those of ``start_http``), but for callbacks
        that do not return. The server itself stays open. Idempotent, from any thread.

        Returns:
            Whether all requests were answered.
        """
        seconds = self._grace if grace is None else check_seconds("grace", grace)
        clean: bool = self._web.stop(self._grace if seconds is None else seconds)
        self._stopped.set()
        with self._lock:
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()
        return clean

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has been stopped; return whether it has."""
        return self._stopped.wait(timeout)

    def on_stopped(self, watcher: Callable[[], object]) -> None:
        """Have ``watcher()`` called once it has been stopped; it must be quick."""
        with self._lock:
            if not self._stopped.is_set():
                self._watchers.append(watcher)
                return
        watcher()


def start(
    app: Served,
    host: str,
    port: int,
    path: str,
    *,
    max_body_bytes: int,
    max_streams: int,
    max_connections: int,
    max_threads: int | None,
    callbacks: int,
    ssl_context: ssl.SSLContext | None,
    grace: float,
    access_log: AccessLog,
) -> HTTPService:
    """Serve an application on threads of its own.

    Args:
        app: the application.
        host: a name or an address; empty for all addresses.
        port: 0 takes a free one.
        path: the endpoint's path, for the URL.
        max_body_bytes: the longest request body.
        max_streams: event streams that are open at once.
        max_connections: connections that are open at once.
        max_threads: requests that run at once, streams apart; ``None``: enough for ``callbacks``.
        callbacks: how many callbacks the server runs at once.
        ssl_context: for TLS.
        grace: see ``HTTPService.stop``.
        access_log: one line for each request: ``True`` to stderr, or to a callable.

    Raises:
        OSError: the address cannot be had.
        ImportError: h11 is not installed.
        TypeError, ValueError: an option is not what it must be.
    """
    try:
        from raxol_sync.server.web.limits import Limits
        from raxol_sync.server.web.service import WebServer
    except ModuleNotFoundError as error:
        if error.name != "h11":
            raise
        raise ImportError("serving HTTP needs the package h11: pip install h11") from error
    if type(port) is not int or not 0 <= port < 65536:
        raise ValueError(f"port must be a number from 0 to 65535, not {port!r}")
    if ssl_context is not None and not isinstance(ssl_context, ssl.SSLContext):
        raise TypeError("ssl_context must be an ssl.SSLContext, with a certificate loaded")
    if not isinstance(access_log, bool):
        check_hook("access_log", access_log)
    if max_threads is None:
        max_threads = max(MAX_THREADS, callbacks + _SPARE_THREADS)
    limits = Limits(
        max_threads=check_count("max_threads", max_threads),
        max_streams=max_streams,
        max_connections=check_count("max_connections", max_connections),
        max_body=max_body_bytes,
        max_bodies=max(256 * 2**20, 4 * max_body_bytes),
    )
    seconds = check_seconds("grace", grace)
    web = WebServer(
        app,
        host,
        port,
        limits=limits,
        ssl_context=ssl_context,
        log=_say_to_stderr if access_log is True else access_log or None,
        on_stop=app.close,
    )
    try:
        web.start()
    except OSError as error:
        raise _unavailable(error, host, port) from error
    return HTTPService(
        web,
        app,
        host,
        path,
        tls=ssl_context is not None,
        grace=GRACE if seconds is None else seconds,
    )


def run(
    service: HTTPService,
    name: str,
    *,
    quiet: bool,
    ready: Callable[[HTTPService], object] | None = None,
) -> None:
    """Wait until SIGINT or SIGTERM comes or the service is stopped, and stop it.

    A second signal while it stops has the effect that it had before.
    """
    with signals() as ended:
        service.on_stopped(ended.set)
        if not quiet:
            _print(f"{name} is served at {service.url} (Ctrl-C ends it)")
        if ready is not None:
            ready(service)
        ended.wait()
    service.stop()


def names_of(host: str) -> list[str]:
    """Return by which names a server that listens at ``host`` is reached, beside loopback ones.

    One that listens everywhere is reached by each of its machine's addresses.
    """
    return [ADDRESSES] if host in _EVERYWHERE else [host]


def _unavailable(error: OSError, host: str, port: int) -> OSError:
    """Return the same error with the place as its file's name, and what to do in its words."""
    advice = {
        errno.EADDRINUSE: "something listens there already; stop it, or take another port (0: any)",
        errno.EACCES: "ports below 1024 are for root; take a higher one",
        errno.EADDRNOTAVAIL: "host must be an address of this machine ('' for all of them)",
    }.get(error.errno or 0, "host must be a name or an address of this machine")
    reason = f"{error.strerror or error} ({advice})"
    return type(error)(error.errno, reason, f"{host}:{port}")


def _in_url(host: str) -> str:
    if host in _EVERYWHERE:
        return "127.0.0.1" if host != "::" else "[::1]"
    return f"[{host}]" if ":" in host else host


def _say_to_stderr(line: str) -> None:
    _print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}")


def _print(line: str) -> None:
    stream = sys.stderr
    if stream is not None:
        stream.write(line + "\n")  # in one piece: lines of several threads do not mix
        stream.flush()
