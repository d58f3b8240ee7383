"""Requests out of bytes, by h11: framing, and the limits on what is taken. Floor 2.

h11 reads the requests and we write the answers: writing by it would cost as much as reading. So
each request gets a parser of its own, which takes over the bytes that followed the last one.

A client sends the same head again and again. What h11 made of a head is remembered for a while: the
same bytes need not be parsed a second time. Only heads that end where h11 saw them end, and whose
body is framed by a length, are remembered.
Measured, with the reasons for h11 alone: docs/explanation/http-server.md.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import h11

from raxol_sync.server.web.environ import split_target, variables
from raxol_sync.server.web.limits import Limits

IDLE, HEAD, BODY = "idle", "head", "body"
"""What of a request is there: nothing, a part of its head, its head."""

_MEMORY = 512  # heads of one server
_MEMORABLE = 2048  # bytes of a head
_BLANK_LINE = re.compile(rb"\n\r?\n")  # what ends a head, for h11

_NEED_DATA, _END = h11.NEED_DATA, h11.EndOfMessage


class RefusedError(Exception):
    """A request is not taken: ``status`` says why. The connection ends with the answer."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass
class Request:
    """A request whose head is whole, and whose body is too unless ``live``.

    Attributes:
        method: as sent.
        target: the path and query, as sent.
        path: decoded, as PEP 3333 wants it.
        query: as sent.
        http10: it speaks HTTP/1.0.
        keep_alive: the client wants to send more.
        variables: those of the headers.
        body: what has come of the body.
        size: bytes in ``body``.
        live: the client waits for "100 Continue" before it sends the body.
    """

    method: str
    target: str
    path: str
    query: str
    http10: bool
    keep_alive: bool
    variables: dict[str, str]
    body: bytes | bytearray = field(default_factory=bytearray)
    size: int = 0
    live: bool = False


class Memory:
    """The heads that one server has seen last, and what h11 made of them. Thread-safe."""

    def __init__(self) -> None:
        # Guards: what is added to known and taken out of it. Leaf. To look something up is atomic.
        self._lock = threading.Lock()
        self.known: dict[bytes, tuple[Request, int]] = {}  # by head: the request, its length

    def keep(self, head: bytes, request: Request, length: int) -> None:
        """Remember one; the oldest is forgotten for it."""
        with self._lock:
            if len(self.known) >= _MEMORY:
                del self.known[next(iter(self.known))]
            self.known[head] = (request, length)


class Parser:
    """The requests of one connection, one after the other. Not thread-safe."""

    __slots__ = (
        "_first",
        "_limits",
        "_memory",
        "_parser",
        "_ready",
        "_request",
        "_rest",
        "stage",
        "started",
    )

    def __init__(self, limits: Limits, memory: Memory) -> None:
        self._limits = limits
        self._memory = memory
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.max_head)
        self._request: Request | None = None
        self._first = b""  # the first bytes of a request
        self._ready = False  # the request was known, and no parser has had a part in it
        self._rest = b""  # then: what came behind it
        self.stage = IDLE
        self.started = False

    @property
    def received(self) -> int:
        """Bytes of the body that have come."""
        return self._request.size if self._request is not None else 0

    def feed(self, data: bytes) -> None:
        """Take bytes; none of them means that no more will come."""
        if self.stage is IDLE:
            if not self.started:
                data = data.lstrip(b"\r\n") if data else data  # RFC 9112, 2.2
                if not data:
                    return
            self.stage = HEAD
            self.started = True
            if self._recall(data):
                return
            self._first = data
        self._parser.receive_data(data)

    def next(self) -> Request | None:
        """Return the request once it is whole, or as soon as it waits for "100 Continue".

        Raises:
            RefusedError: what came is no request that we take.
        """
        if self.stage is IDLE:
            return None
        if self._ready:
            return self._request
        try:
            request = self._request
            if request is None:
                event = self._parser.next_event()
                if type(event) is not h11.Request:
                    self._check_open(event)
                    return None
                request = self._request = self._head(event)
                self.stage = BODY
                self._remember(request)
            return self._collect(request)
        except h11.RemoteProtocolError as error:
            raise self._refusal(error) from None

    def _collect(self, request: Request) -> Request | None:
        next_event = self._parser.next_event
        while True:
            event: Any = next_event()
            kind = type(event)
            if kind is h11.Data:
                self._add(request, event.data)
            elif kind is _END:
                request.live = False
                return request
            elif request.live and not request.size:
                return request
            else:
                return None

    def piece(self) -> bytes | None:
        """Return the next piece of a live body; empty at its end, ``None`` if it has not come.

        Raises:
            RefusedError: the body is malformed, too long, or ends before its end.
        """
        request = self._request
        assert request is not None
        try:
            event = self._parser.next_event()
        except h11.RemoteProtocolError as error:
            raise self._refusal(error) from None
        if type(event) is h11.Data:
            data = bytes(event.data)
            self._add(request, b"", len(data))
            return data
        return b"" if type(event) is _END else None

    def restart(self) -> None:
        """Begin with the next request, whose first bytes may be here already."""
        if self._ready:
            rest, self._rest, self._ready = self._rest, b"", False
        else:
            rest = self._parser.trailing_data[0]
            self._parser = h11.Connection(
                h11.SERVER, max_incomplete_event_size=self._limits.max_head
            )
        self._request = None
        self._first = b""
        self.stage = IDLE
        self.started = False
        if rest:
            self.feed(rest)

    def _recall(self, data: bytes) -> bool:
        """Make the request of bytes whose head is known and whose body is there."""
        end = data.find(b"\r\n\r\n", 0, _MEMORABLE) + 4
        known = self._memory.known.get(data[:end])
        if known is None or len(data) < end + known[1]:
            return False
        request, length = known
        self._request = replace(request, body=data[end : end + length], size=length)
        self._rest = data[end + length :]
        self._ready = True
        self.stage = BODY
        return True

    def _remember(self, request: Request) -> None:
        """Keep what h11 made of a head, if its bytes came in one piece and say where they end."""
        data, self._first = self._first, b""
        end = data.find(b"\r\n\r\n", 0, _MEMORABLE) + 4
        blank = _BLANK_LINE.search(data, 0, end)
        if blank is None or blank.end() != end or request.live:
            return
        if "HTTP_TRANSFER_ENCODING" in request.variables:
            return
        length = int(request.variables.get("CONTENT_LENGTH", "0"))
        self._memory.keep(data[:end], replace(request, body=b"", size=0), length)

    def _add(self, request: Request, data: bytes, size: int | None = None) -> None:
        request.size += len(data) if size is None else size
        if request.size > self._limits.max_body:
            raise RefusedError(
                "413 Content Too Large", f"a body has at most {self._limits.max_body} bytes"
            )
        if data:
            request.body += data

    def _head(self, event: h11.Request) -> Request:
        limits = self._limits
        headers = event.headers.raw_items()
        if len(event.target) > limits.max_target:
            raise self._long_target()
        size = sum([len(name) + len(value) for name, value in headers])
        if len(headers) > limits.max_fields or size > limits.max_head:
            raise RefusedError("431 Request Header Fields Too Large", "too many or long headers")
        if event.http_version not in (b"1.1", b"1.0"):
            raise RefusedError("505 HTTP Version Not Supported", "HTTP/1.1 and HTTP/1.0 are")
        parts = split_target(event.target)
        if parts is None or event.method == b"CONNECT":
            raise RefusedError("400 Bad Request", "the target is no path and no URL")
        path, query, host = parts
        found = variables(headers)
        if host is not None:
            found["HTTP_HOST"] = host
        http10 = event.http_version == b"1.0"
        target = event.target.decode("latin-1")
        request = Request(
            event.method.decode("latin-1"), target, path, query, http10, not http10, found
        )
        self._check_framing(request, found)
        return request

    def _check_framing(self, request: Request, found: dict[str, str]) -> None:
        """Refuse what two parsers could read in two ways, and bodies that are too long."""
        if "HTTP_TRANSFER_ENCODING" in found and ("CONTENT_LENGTH" in found or request.http10):
            raise RefusedError("400 Bad Request", "a transfer encoding contradicts the framing")
        length = found.get("CONTENT_LENGTH")
        if length is not None and (len(length) > 18 or int(length) > self._limits.max_body):
            raise RefusedError(
                "413 Content Too Large", f"a body has at most {self._limits.max_body} bytes"
            )
        connection = found.get("HTTP_CONNECTION")
        if connection is not None and "close" in connection.lower().replace(" ", "").split(","):
            request.keep_alive = False
        expect = found.get("HTTP_EXPECT")
        if expect is not None and not request.http10:
            if expect.lower() != "100-continue":
                raise RefusedError("417 Expectation Failed", "only 100-continue is known")
            request.live = True

    def _check_open(self, event: Any) -> None:
        """Nothing whole is there: wait, or see that it can be none."""
        if event is not _NEED_DATA:  # the client's side is closed
            raise RefusedError("400 Bad Request", "the request ended early")

    def _long_target(self) -> RefusedError:
        return RefusedError(
            "414 URI Too Long", f"a target has at most {self._limits.max_target} bytes"
        )

    def _refusal(self, error: h11.RemoteProtocolError) -> RefusedError:
        status = error.error_status_hint
        if status == 431:
            if self._request is None and b"\n" not in self._parser.trailing_data[0]:
                return self._long_target()
            return RefusedError("431 Request Header Fields Too Large", "too many or long headers")
        if status == 501:
            return RefusedError("501 Not Implemented", "the only transfer encoding is chunked")
        # h11's own words may quote what was sent: they are not repeated.
        return RefusedError("400 Bad Request", "this is no well-formed HTTP/1.1 request")
