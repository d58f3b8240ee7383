"""A scriptable HTTP server on raw sockets, that can do what no proper one does."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
MODERN, LEGACY = "2026-07-28", "2025-11-25"
TOOL = {"name": "echo", "description": "x", "inputSchema": {"type": "object"}}


@dataclass
class Seen:
    """One request as it came."""

    verb: str
    path: str
    headers: dict[str, str]
    body: Json
    conn: Conn
    at: float = field(default_factory=time.monotonic)

    @property
    def method(self) -> str:
        return str(self.body.get("method", ""))

    @property
    def id(self) -> Any:
        return self.body.get("id")


class Conn:
    """One connection; the script writes to it."""

    def __init__(self, sock: socket.socket, server: Hostile) -> None:
        self.sock = sock
        self.raw = sock  # below TLS; of no use for reading then
        self.server = server
        self.closed = threading.Event()  # the client has closed it, or we have

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def json(self, message: object, status: int = 200, headers: Json | None = None) -> None:
        body = json.dumps(message).encode()
        self.reply(status, body, {"Content-Type": "application/json", **(headers or {})})

    def events(self, headers: Json | None = None) -> None:
        """Begin a stream, chunked."""
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n" + extra.encode() + b"\r\n"
        )

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def event(self, message: object, event_id: str | None = None, retry: int | None = None) -> None:
        lines = [] if event_id is None else [f"id: {event_id}"]
        lines += [] if retry is None else [f"retry: {retry}"]
        lines.append(f"data: {json.dumps(message)}" if message is not None else "data:")
        self.chunk(("\n".join(lines) + "\n\n").encode())

    def end(self) -> None:
        """End the stream properly."""
        self.send(b"0\r\n\r\n")

    def close(self, *, reset: bool = False) -> None:
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            # Wakes who reads it, who would otherwise keep the socket open.
            self.sock.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)
        self.sock.close()
        self.closed.set()

    def wait_gone(self, seconds: float = 5.0) -> bool:
        """Wait until the client has closed the connection; return whether it did."""
        self.sock.settimeout(seconds)
        try:
            while self.sock.recv(65536):
                pass
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            pass
        return True


Script = Callable[[Seen, Conn], object]


class Hostile:
    """The server. `script(request, conn)` answers; what it raises closes the connection."""

    def __init__(
        self, script: Script, host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.script = script
        self.tls = tls
        self.bad_tls = False  # what comes instead of a handshake is none
        self.seen: list[Seen] = []
        self.arrived: queue.SimpleQueue[Seen] = queue.SimpleQueue()
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        self.conns: list[Conn] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        self._spawn(self._accept)

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/mcp"

    def of(self, method: str) -> list[Seen]:
        """The requests of one JSON-RPC method, or HTTP verb."""
        return [seen for seen in self.seen if method in (seen.method, seen.verb)]

    def wait(self, method: str, seconds: float = 10.0) -> Seen:
        """Wait for the next request of a method (or HTTP verb) that was not waited for yet."""
        deadline = time.monotonic() + seconds
        while True:
            seen = self.arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            if method in (seen.method, seen.verb):
                return seen

    def open_connections(self) -> int:
        """How many connections no side has closed."""
        with self._lock:
            return sum(not conn.closed.is_set() for conn in self.conns)

    def die(self) -> None:
        """Close everything at once, and listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            conns = list(self.conns)
        for conn in conns:
            conn.close()

    def revive(self) -> None:
        """Listen again, on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._spawn(self._accept)

    def drop(self) -> None:
        """Close every connection, and go on listening."""
        with self._lock:
            conns = list(self.conns)
        for conn in conns:
            conn.close()

    def close(self) -> None:
        self._closed = True
        self.die()
        for thread in self._threads:
            thread.join(5)

    def _spawn(self, target: Callable[[], object]) -> None:
        thread = threading.Thread(target=target, name="hostile", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            conn = Conn(sock, self)
            with self._lock:
                self.conns.append(conn)
            self._spawn(lambda conn=conn: self._serve(conn))  # type: ignore[misc]

    def _shake(self, conn: Conn, tls: ssl.SSLContext) -> bool:
        if self.bad_tls:
            conn.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            conn.close()
            return False
        conn.raw = conn.sock
        conn.sock = tls.wrap_socket(conn.sock, server_side=True)
        return True

    def _serve(self, conn: Conn) -> None:
        data = b""
        try:
            if self.tls is not None and not self._shake(conn, self.tls):
                return
            while True:
                while b"\r\n\r\n" not in data:
                    more = conn.sock.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")
                pairs = (line.split(": ", 1) for line in lines)
                headers = {name.lower(): value for name, value in pairs}
                length = int(headers.get("content-length", "0"))
                while len(data) < length:
                    more = conn.sock.recv(65536)
                    if not more:
                        return
                    data += more
                body, data = data[:length], data[length:]
                verb, path, _ = first.split(" ")
                parsed = json.loads(body) if body.strip() else {}
                seen = Seen(verb, path, headers, parsed, conn)
                with self._lock:
                    self.seen.append(seen)
                self.arrived.put(seen)
                self.script(seen, conn)
        except (OSError, ValueError):
            pass
        finally:
            conn.close()


def result(seen: Seen, value: Json) -> Json:
    return {"jsonrpc": "2.0", "id": seen.id, "result": value}


def failure(seen: Seen, code: int, message: str = "no", data: object = None) -> Json:
    error = {"code": code, "message": message, "data": data}
    return {"jsonrpc": "2.0", "id": seen.id, "error": error}


def text(words: str) -> Json:
    return {"content": [{"type": "text", "text": words}], "isError": False}


class Polite:
    """A proper little server of one era; `on` replaces what it does for a method or a verb."""

    def __init__(self, era: str = "modern", *, session: str | None = "s1") -> None:
        self.era = era
        self.session = session if era == "legacy" else None
        self.on: dict[str, Script] = {}
        self.capabilities: Json = {"tools": {}}

    def __call__(self, seen: Seen, conn: Conn) -> None:
        for key in (seen.method, seen.verb if not seen.method else ""):
            if key in self.on:
                self.on[key](seen, conn)
                return
        self.behave(seen, conn)

    def behave(self, seen: Seen, conn: Conn) -> None:
        """Do what a proper server does."""
        if seen.verb != "POST":
            conn.reply(200 if seen.verb == "DELETE" else 405)
        elif seen.method == "server/discover" and self.era == "legacy":
            conn.reply(400, b"Bad Request: no session", {"Content-Type": "text/plain"})
        elif seen.id is None or not seen.method:
            conn.reply(202)
        elif seen.method == "server/discover":
            value = {"supportedVersions": [MODERN], "capabilities": self.capabilities}
            conn.json(result(seen, {**value, "resultType": "complete"}))
        elif seen.method == "initialize":
            value = {"protocolVersion": LEGACY, "capabilities": self.capabilities}
            info = {"serverInfo": {"name": "hostile", "version": "1"}}
            headers = {"Mcp-Session-Id": self.session} if self.session else {}
            conn.json(result(seen, {**value, **info}), headers=headers)
        elif seen.method == "tools/list":
            conn.json(result(seen, {"tools": [TOOL]}))
        elif seen.method == "tools/call":
            conn.json(result(seen, text(str(seen.body["params"].get("arguments", {}).get("text")))))
        else:
            conn.json(failure(seen, -32601), 404 if self.era == "modern" else 200)
