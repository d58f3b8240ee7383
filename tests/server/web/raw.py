"""Raw sockets against an embedded web server, and an application with known answers."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPResponse
from typing import Any

from raxol_sync.server.web.limits import Limits
from raxol_sync.server.web.poller import EpollPoller, Poller, SelectorPoller
from raxol_sync.server.web.service import WebServer
from tests.waiting import wait_until

WAIT = 10.0  # seconds after which a test has failed
POLLERS: dict[str, Callable[[], Poller]] = {
    "select": lambda: SelectorPoller(selectors.SelectSelector()),
    "selectors": SelectorPoller,
}
if hasattr(select, "epoll"):
    POLLERS["epoll"] = EpollPoller

GET = b"GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"


def post(body: bytes = b"hello", *headers: bytes, path: bytes = b"/echo") -> bytes:
    """A POST as bytes."""
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: h", b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*lines, *headers, b"", b""]) + body


class Answer:
    """One response."""

    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Raw:
    """A client's end of a connection, byte by byte."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None):
        self.sock = socket.create_connection((host, port), WAIT)
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def send(self, data: bytes) -> Raw:
        self.sock.sendall(data)
        return self

    def answer(self, method: str = "GET") -> Answer:
        """Read exactly one response."""
        response = HTTPResponse(_Unbuffered(self.sock), method=method)  # type: ignore[arg-type]
        response.begin()
        return Answer(response)

    def ended(self) -> bool:
        """Wait for the server to close; whether nothing came before that."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def line(self) -> bytes:
        """Read up to a line's end."""
        found = b""
        while not found.endswith(b"\n"):
            data = self.sock.recv(1)
            if not data:
                break
            found += data
        return found

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


class _Unbuffered:
    """Gives http.client a file that takes no byte more than the response has."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, mode: str) -> Any:
        return _Exact(self._sock, "r")


class _Exact(socket.SocketIO):
    """Reads as many bytes as are wanted."""

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self.readall()
        found = bytearray()
        while len(found) < size and (data := super().read(size - len(found))):
            found += data
        return bytes(found)


class App:
    """A WSGI application with known answers, which notes what happens to it."""

    def __init__(self) -> None:
        self.events: queue.Queue[str] = queue.Queue()
        self.release = threading.Event()
        self.feeds: queue.Queue[bytes | None] = queue.Queue()
        self.running = 0

    def event(self) -> str:
        """What happened next."""
        return self.events.get(timeout=WAIT)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        route = environ["PATH_INFO"].strip("/").replace("-", "_")
        found: Callable[..., Any] = getattr(self, f"_{route}", self._missing)
        return found(environ, start_response)

    def _missing(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        start_response("404 Not Found", [("Content-Length", "0")])
        return []

    def _echo(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        body = environ["wsgi.input"].read()
        start_response(
            "200 OK", [("Content-Type", "text/plain"), ("X-Method", environ["REQUEST_METHOD"])]
        )
        return [body]

    def _environ(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        plain = {k: v for k, v in environ.items() if isinstance(v, str | bool | int | tuple)}
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(plain).encode()]

    def _hold(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Answer once released."""
        environ["raxol_sync.host"].watch(lambda: self.events.put("gone"))
        self.events.put("held")
        self.release.wait(WAIT)
        start_response("200 OK", [])
        return [b"released"]

    def _late(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Watch once released; answer once told."""
        self.events.put("begun")
        self.release.wait(WAIT)
        told = threading.Event()
        environ["raxol_sync.host"].watch(told.set)
        self.events.put("gone" if told.wait(WAIT) else "not told")
        start_response("200 OK", [])
        return [b""]

    def _big(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        size = int(environ["QUERY_STRING"])
        start_response("200 OK", [("Content-Length", str(size))])
        return [b"x" * size]

    def _flood(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Stream for ever."""
        start_response("200 OK", [])
        return self._noted(b"y" * 65536 for _ in range(10**6))

    def _lumps(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Stream large pieces for ever."""
        start_response("200 OK", [])
        return self._noted(b"y" * 50_000_000 for _ in range(10**6))

    def _stream(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """An event stream fed by ``feeds``, ended by None or the client's end."""
        host = environ["raxol_sync.host"]
        if not host.begin_stream():
            start_response("503 Service Unavailable", [("Retry-After", "1")])
            return [b"full"]
        own: queue.Queue[bytes | None] = self.feeds if environ["QUERY_STRING"] else queue.Queue()
        host.watch(lambda: own.put(None))
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return self._noted(self._fed(own))

    def _fed(self, own: queue.Queue[bytes | None]) -> Iterator[bytes]:
        yield b": open\n"
        while (item := own.get(timeout=WAIT)) is not None:
            yield item

    def _noted(self, items: Iterable[bytes]) -> Iterator[bytes]:
        try:
            yield from items
        finally:
            self.events.put("closed")


def descriptors() -> int:
    """How many descriptors this process has; 0 where one cannot tell."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def until(condition: Callable[[], object]) -> None:
    """Wait until something is true."""
    wait_until(condition, WAIT)


@contextlib.contextmanager
def serving(
    app: Any, *, host: str = "127.0.0.1", grace: float = 2.0, poller: str = "", **options: Any
) -> Iterator[WebServer]:
    """A started server, whose threads and descriptors are all gone at the end."""
    known = {
        name: options.pop(name) for name in list(options) if name in Limits.__dataclass_fields__
    }
    before = descriptors()
    if poller:
        options["make_poller"] = POLLERS[poller]
    server = WebServer(app, host, 0, limits=Limits(**known), **options)
    server.start()
    try:
        yield server
    finally:
        server.stop(grace)
    assert server.counts().connections == 0
    assert server.counts().streams == 0
    assert not [t.name for t in threading.enumerate() if t.name.startswith("raxol-sync-http")]
    until(lambda: descriptors() <= before)
