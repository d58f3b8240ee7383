"""Drives the WSGI application in process, always through the standard library's validator."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit
from wsgiref.validate import validator

from raxol_sync import Server
from tests.server.helpers import CAPABILITIES, VERSION, WAIT, initialize

Json = dict[str, Any]
MODERN = "2026-07-28"
BOTH = "application/json, text/event-stream"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Host:
    """A host that watches its clients, as the embedded server does; `leave` is the client's end."""

    def __init__(self, places: int = 1000) -> None:
        self.places = places
        self.streaming = False
        self.watching: list[Callable[[], object]] = []
        self.watched = threading.Event()

    def begin_stream(self) -> bool:
        self.places -= 1
        self.streaming = self.places >= 0
        return self.streaming

    def end_stream(self) -> None:
        self.places += self.streaming
        self.streaming = False

    def watch(self, on_gone: Callable[[], object]) -> None:
        self.watching.append(on_gone)
        self.watched.set()

    def leave(self) -> None:
        """The client closes its connection."""
        assert self.watched.wait(WAIT)
        for on_gone in self.watching:
            on_gone()


class Answer:
    """What came back: status, headers, and the body as one piece or as a stream."""

    def __init__(self, status: str, headers: list[tuple[str, str]], chunks: Any) -> None:
        self.status = int(status.split()[0])
        self.all_headers = headers
        self.headers = {name.lower(): value for name, value in headers}
        self.is_stream = self.headers.get("content-type") == "text/event-stream"
        self.chunks = chunks
        self._iterator = iter(chunks)
        self._body: bytes | None = None
        self._buffer = b""
        if not self.is_stream:
            self._read()

    def _read(self) -> bytes:
        if self._body is None:
            self._body = b"".join(self._iterator)
            self.close()
        return self._body

    @property
    def body(self) -> bytes:
        """All of the body, to its end."""
        return self._read()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        assert self.headers["content-type"] == "application/json", self.headers
        return json.loads(self.body)

    @property
    def code(self) -> int:
        """The code of the JSON-RPC error that it is."""
        value: int = self.json["error"]["code"]
        return value

    def next_chunk(self) -> bytes:
        """The next piece of the stream; empty at its end."""
        return next(self._iterator, b"")

    def events(self) -> Iterator[dict[str, str]]:
        """The events of the stream, as they come, comments left out."""
        while True:
            while b"\n\n" not in self._buffer:
                chunk = self.next_chunk()
                if not chunk:
                    return
                self._buffer += chunk
            block, _, self._buffer = self._buffer.partition(b"\n\n")
            fields = [line.partition(": ") for line in block.decode().split("\n")]
            found = {name.rstrip(":"): value for name, _, value in fields if name}
            if found:
                yield found

    def messages(self) -> Iterator[Json]:
        """The messages of the stream, as they come."""
        for event in self.events():
            if event.get("data"):
                yield json.loads(event["data"])

    def next_message(self) -> Json:
        """The next message of the stream."""
        return next(self.messages())

    def close(self) -> None:
        """The response is over."""
        close = getattr(self.chunks, "close", None)
        if close is not None:
            close()


class Driver:
    """Sends requests to an application."""

    def __init__(self, app: Any, *, path: str = "/mcp", **defaults: Any) -> None:
        self.app = app
        self.path = path
        self.defaults = defaults

    def send(
        self,
        method: str,
        path: str | None = None,
        body: bytes = b"",
        *,
        headers: dict[str, str] | None = None,
        environ: Json | None = None,
        validate: bool = True,
    ) -> Answer:
        """Send one request as it is."""
        url = urlsplit(self.path if path is None else path)
        env: Json = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "8000",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        if body or method == "POST":
            env["CONTENT_LENGTH"] = str(len(body))
        for name, value in {"Host": "localhost:8000", **(headers or {})}.items():
            key = name.upper().replace("-", "_")
            env[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
        env.update(self.defaults)
        env.update(environ or {})
        env = {key: value for key, value in env.items() if value is not None}
        started: list[Any] = []

        def start_response(status: str, headers: Any, exc_info: Any = None) -> Any:
            started.append((status, headers))
            return lambda data: None

        app = validator(self.app) if validate else self.app
        chunks: Iterable[bytes] = app(env, start_response)
        status, found = started[0]
        return Answer(status, found, chunks)

    def post(self, message: object, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        """POST a message, with media types as they should be."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        usual = {"Content-Type": "application/json", "Accept": BOTH}
        return self.send("POST", body=body, headers={**usual, **(headers or {})}, **more)

    def modern(
        self,
        method: str,
        params: Json | None = None,
        id: object = 1,
        *,
        meta: Json | None = None,
        headers: dict[str, str | None] | None = None,
        **more: Any,
    ) -> Answer:
        """POST a request of the stateless era, with the headers that belong to it."""
        envelope = {VERSION: MODERN, CAPABILITIES: {}, **(meta or {})}
        params = {**(params or {}), "_meta": {k: v for k, v in envelope.items() if v is not None}}
        usual: dict[str, Any] = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in NAMED_BY:
            usual["Mcp-Name"] = params.get(NAMED_BY[method])
        usual.update(headers or {})
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return self.post(message, {k: v for k, v in usual.items() if v is not None}, **more)

    def call(self, tool: str, arguments: Json | None = None, **more: Any) -> Answer:
        """Call a tool in the stateless era."""
        return self.modern("tools/call", {"name": tool, "arguments": arguments or {}}, **more)

    def open(self, revision: str = "2025-11-25", **capabilities: Any) -> Session:
        """Begin a legacy session."""
        answer = self.post(initialize(revision, **capabilities))
        assert answer.status == 200, answer.body
        session = Session(self, answer.headers["mcp-session-id"], revision)
        told = session.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert told.status == 202
        assert told.body == b""
        return session


class Session:
    """A legacy session over HTTP."""

    def __init__(self, driver: Driver, id: str, revision: str) -> None:
        self.driver = driver
        self.id = id
        self.headers = {"Mcp-Session-Id": id, "MCP-Protocol-Version": revision}

    def post(self, message: object, **more: Any) -> Answer:
        """POST a message."""
        return self.driver.post(message, self.headers, **more)

    def get(self, last: str | None = None, **more: Any) -> Answer:
        """Open the stream, or go on with one."""
        headers = {"Accept": "text/event-stream", **self.headers}
        if last is not None:
            headers["Last-Event-ID"] = last
        return self.driver.send("GET", headers=headers, **more)

    def delete(self) -> Answer:
        """End it."""
        return self.driver.send("DELETE", headers=self.headers)


def app_of(server: Server, **options: Any) -> Any:
    """The application of a server that lets everybody in."""
    return server.wsgi_app(require_authorization=False, **options)


def driver_of(server: Server, **options: Any) -> Driver:
    """A driver of that."""
    return Driver(app_of(server, **options))


def in_thread(function: Callable[[], Any]) -> Future:
    """Run something on a thread of its own; `result` waits for it."""
    return Future(function)


class Future:
    """What a thread of the test returns."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        """What it returned, or raised."""
        self._thread.join(WAIT)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self._value
