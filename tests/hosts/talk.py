"""Speaks MCP over HTTP in plain sight: one connection for each request, no library of ours."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
TIMEOUT = 15.0  # seconds for one answer
Json = dict[str, Any]
_ids = itertools.count(1)


@dataclass
class Answer:
    """What came back for one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    messages: list[Json] = field(default_factory=list)

    @property
    def message(self) -> Json:
        """The response itself: the last message."""
        return self.messages[-1]

    @property
    def result(self) -> Json:
        """The response's result."""
        assert "result" in self.message, self.message
        result: Json = self.message["result"]
        return result

    @property
    def text(self) -> str:
        """The first text of a tool's result."""
        return str(self.result["content"][0]["text"])

    @property
    def structured(self) -> Json:
        """The structured content of a tool's result."""
        content: Json = self.result["structuredContent"]
        return content


class Stream:
    """An answer that is still coming."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._socket = connection.sock  # a response that ends with the connection takes it away
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}
        self.comments = 0
        self.last_id = ""

    @property
    def events(self) -> bool:
        """Whether it is an event stream."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def __iter__(self) -> Iterator[Json]:
        """Yield the messages of an event stream as they come."""
        for name, data in self.events_named():
            if name == "message" and data:  # the first one of a stream to be resumed is empty
                yield json.loads(data)

    def events_named(self) -> Iterator[tuple[str, str]]:
        """Yield the events of an event stream as they come: their names and data."""
        name, data = "message", []
        while line := self._response.readline():
            key, colon, value = line.decode().rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if key == "data":
                data.append(value)
            elif key == "event":
                name = value
            elif key == "id":
                self.last_id = value
            elif colon and not key:
                self.comments += 1
            elif not key:
                yield name, "\n".join(data)
                name, data = "message", []

    def next(self) -> Json:
        """Return the next message."""
        return next(iter(self))

    def all(self) -> Answer:
        """Read to the end."""
        if self.events:
            return Answer(self.status, self.headers, b"", list(self))
        body = self._response.read()
        messages = []
        if self.headers.get("content-type", "").startswith("application/json") and body:
            found = json.loads(body)
            messages = found if isinstance(found, list) else [found]
        return Answer(self.status, self.headers, body, messages)

    def close(self) -> None:
        """Leave, at once, and without reading what is still to come."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._response.close()
        self._connection.close()


@dataclass
class Talk:
    """Where a server is, and how to speak to it."""

    port: int
    path: str = "/mcp"
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The endpoint, for clients of others."""
        return f"http://{self.host}:{self.port}{self.path}"

    def send(
        self,
        method: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        path: str | None = None,
    ) -> Stream:
        """Send one request; return its answer, once it has begun."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT)
        try:
            given = dict(headers or {})
            connection.putrequest(
                method, self.path if path is None else path, skip_host="Host" in given
            )
            if body is not None and "Content-Length" not in given:
                given["Content-Length"] = str(len(body))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            return Stream(connection)
        except BaseException:
            connection.close()
            raise

    # ------------------------------------------------------------ the stateless era

    def open(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        progress: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Stream:
        """Send a request of revision 2026-07-28."""
        meta: Json = {
            META + "protocolVersion": MODERN,
            META + "clientInfo": {"name": "talk", "version": "1"},
            META + "clientCapabilities": dict(capabilities or {}),
        }
        number = next(_ids)
        if progress:
            meta["progressToken"] = number
        given = {**(params or {}), "_meta": meta}
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            **(headers or {}),
        }
        name = given.get("uri") if method == "resources/read" else given.get("name")
        if name is not None:
            sent["Mcp-Name"] = name
        return self.send("POST", json.dumps(message).encode(), sent)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        """Send a request of revision 2026-07-28 and return the whole answer."""
        with contextlib.closing(self.open(method, params, **options)) as stream:
            return stream.all()

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **rest: Any) -> Answer:
        """Call a tool in revision 2026-07-28."""
        options = {key: rest.pop(key) for key in ("capabilities", "progress") if key in rest}
        return self.ask(
            "tools/call", {"name": name, "arguments": dict(arguments or {}), **rest}, **options
        )

    def seen(self) -> Json:
        """What the server knows of its clients."""
        return self.call("seen").structured

    # ------------------------------------------------------------ sessions

    def session(self, capabilities: Mapping[str, Any] | None = None) -> Session:
        """Open a session of revision 2025-11-25; nameless where the server makes none."""
        session = Session(self)
        params = {
            "protocolVersion": LEGACY,
            "capabilities": dict(capabilities or {}),
            "clientInfo": {"name": "talk", "version": "1"},
        }
        answer = session.ask("initialize", params)
        assert answer.status == 200, answer
        assert answer.result["protocolVersion"] == LEGACY
        session.name = answer.headers.get("mcp-session-id", "")
        session.tell("notifications/initialized")
        return session


@dataclass
class Session:
    """A session of revision 2025-11-25."""

    talk: Talk
    name: str = ""

    def headers(self) -> dict[str, str]:
        """What each request of the session carries."""
        found = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.name:
            found.update({"Mcp-Session-Id": self.name, "MCP-Protocol-Version": LEGACY})
        return found

    def post(self, message: Mapping[str, Any]) -> Stream:
        """POST any message."""
        whole = {"jsonrpc": "2.0", **message}
        return self.talk.send("POST", json.dumps(whole).encode(), self.headers())

    def open(
        self, method: str, params: Mapping[str, Any] | None = None, *, progress: bool = False
    ) -> Stream:
        """Send a request."""
        number = next(_ids)
        given = dict(params or {})
        if progress:
            given["_meta"] = {"progressToken": number}
        return self.post({"id": number, "method": method, "params": given})

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        """Send a request and return the whole answer."""
        with contextlib.closing(self.open(method, params, **options)) as stream:
            return stream.all()

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **rest: Any) -> Answer:
        """Call a tool."""
        return self.ask("tools/call", {"name": name, "arguments": dict(arguments or {})}, **rest)

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> Answer:
        """Send a notification."""
        message: Json = {"method": method}
        if params is not None:
            message["params"] = dict(params)
        with contextlib.closing(self.post(message)) as stream:
            return stream.all()

    def reply(self, request: Mapping[str, Any], result: Mapping[str, Any]) -> Answer:
        """Answer a request of the server's."""
        with contextlib.closing(self.post({"id": request["id"], "result": result})) as stream:
            return stream.all()

    def listen(self, last_id: str = "") -> Stream:
        """Open the stream for what belongs to no request, or go on with one that broke."""
        headers = {**self.headers(), "Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        del headers["Content-Type"]
        return self.talk.send("GET", None, headers)

    def end(self) -> int:
        """DELETE the session; return the status."""
        with contextlib.closing(self.talk.send("DELETE", None, self.headers())) as stream:
            return stream.all().status


def eventually(probe: Any, seconds: float) -> Any:
    """Return the first true value of a probe within some seconds, else its last one."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)
