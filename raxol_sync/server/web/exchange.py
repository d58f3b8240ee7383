"""One request through a WSGI application (PEP 3333), and its answer. Floor 2.

An ``Exchange`` is also what an application finds as ``environ["raxol_sync.host"]``: it may take a
place among the event streams, and be told when the client goes.
"""

from __future__ import annotations

import contextlib
import io
import logging
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Protocol

from raxol_sync._deadline import now
from raxol_sync.server.web.connection import Connection, GoneError, call_out
from raxol_sync.server.web.parsing import RefusedError, Request
from raxol_sync.server.web.response import CONTINUE, Head, canned

Environ = dict[str, Any]
ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None] | None
WSGIApp = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
_log = logging.getLogger("raxol_sync.server")

HOST_KEY = "raxol_sync.host"
_LAST = b"0\r\n\r\n"


class Service(Protocol):
    """What an exchange needs of the server."""

    app: WSGIApp

    @property
    def ending(self) -> bool:
        """Whether the server stops."""

    def take_stream(self) -> bool:
        """Take a place among the event streams, if one is free."""

    def give_stream(self) -> None:
        """Give it back."""

    def take_reader(self) -> bool:
        """Let one more thread wait for a body, if few enough do."""

    def give_reader(self) -> None:
        """It waits no longer."""

    def watch_client(self, connection: Connection) -> None:
        """Have ``connection.notice_gone`` called once its client is gone."""


class AppError(Exception):
    """The application broke PEP 3333."""


class LiveBody(io.RawIOBase):
    """A body whose client waits for "100 Continue", which the first read sends."""

    def __init__(self, connection: Connection, read: Callable[[], object]) -> None:
        self._connection = connection
        self._read = read  # called once the body is read
        self._held = b""
        self.asked = False
        self.ended = False

    def readable(self) -> bool:
        """As of any file that is read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for bytes.

        Raises:
            OSError: the body did not come, or not as announced.
        """
        if not self._held and not self.ended:
            self._held = self._next()
            if not self._held:
                self.ended = True
                self._read()
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size

    def is_read(self) -> bool:
        """Whether the whole body has been read. Else the client may send it now, or never."""
        if self.asked and not self.ended and not self._held:
            with contextlib.suppress(RefusedError):
                self.ended = self._connection.parser.piece() == b""
        return self.ended

    def _next(self) -> bytes:
        connection = self._connection
        try:
            if not self.asked:
                self.asked = True
                connection.send(CONTINUE)
                connection.begun = now()
            while (piece := connection.parser.piece()) is None:
                connection.read_more()
            connection.weigh_body()
        except RefusedError as error:
            connection.closes = True
            raise GoneError(error.reason) from None
        except OSError as error:
            raise GoneError(str(error)) from None
        return piece


class Exchange:
    """One request and its answer. For one thread; what a host offers (``Host``) for any."""

    __slots__ = (
        "_connection",
        "_head",
        "_live",
        "_lock",
        "_outlived",
        "_reads",
        "_request",
        "_sent",
        "_service",
        "_streaming",
        "_written",
        "code",
        "rest",
    )

    def __init__(self, service: Service, connection: Connection, request: Request) -> None:
        self._service = service
        self._connection = connection
        self._request = request
        self._head: Head | None = None
        self._live: LiveBody | None = None
        self._sent = False  # the head
        self._written = 0  # bytes of the body
        # Guards: _streaming, _outlived. Leaf.
        self._lock = threading.Lock()
        self._streaming = False
        self._outlived = False  # a stream has given its place back, and may have one more piece
        self._reads = False  # counted as a thread that may wait for a body
        self.code = 500
        self.rest = b""  # the end of the answer, which no thread need wait for

    @property
    def size(self) -> int:
        """How long the body is that was written."""
        return self._written

    # ------------------------------------------------------------ the host's side

    def begin_stream(self) -> bool:
        """Take one of the places for event streams; given back when the answer has ended."""
        if not self._streaming:
            self._streaming = self._service.take_stream()
        return self._streaming

    def end_stream(self) -> None:
        """Give it back before that. A piece that still comes is written with the answer's end."""
        with self._lock:
            streaming, self._streaming = self._streaming, False
            self._outlived = self._outlived or streaming
        if streaming:
            self._service.give_stream()

    def watch(self, on_gone: Callable[[], object]) -> None:
        """Have ``on_gone()`` called when the client has gone, or the server has to break off."""
        first = self._connection.watch(on_gone)
        if first is None:
            call_out(on_gone)
        elif first:
            self._service.watch_client(self._connection)

    # ------------------------------------------------------------ the application's side

    def start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExcInfo = None
    ) -> Callable[[bytes], object]:
        """As PEP 3333 has it."""
        if exc_info is not None:
            try:
                if self._sent and exc_info[1] is not None:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        elif self._head is not None:
            raise AppError("start_response was called twice, without exc_info")
        self._head = Head(status, headers)
        return self._write

    def _write(self, data: bytes) -> None:
        """Write a part of the body at once (the ``write`` of PEP 3333)."""
        if data:
            self._send(data)

    # ------------------------------------------------------------ running it

    def run(self) -> bool:
        """Run the application and write what it says; return whether the connection goes on.

        ``rest`` then holds what is left to write.

        Raises:
            OSError: the client is gone, or does not read. The connection must be closed.
        """
        connection = self._connection
        connection.closes = not self._request.keep_alive
        connection.begin_watching()
        try:
            self._run()
        except OSError as error:
            if self._is_clients(error):
                raise
            self._fail()
        except RefusedError:
            raise
        except BaseException:  # whatever an application raises, even SystemExit, costs its client
            self._fail()
        finally:
            connection.end_watching()
            self._end_reading()
            self.end_stream()
        return not connection.closes

    def _end_reading(self) -> None:
        if self._reads:
            self._reads = False
            self._service.give_reader()

    def _is_clients(self, error: OSError) -> bool:
        """Tell a client's end from an error of the application's: only ours are noted."""
        return isinstance(error, (_Broken, GoneError))

    def _run(self) -> None:
        result = self._service.app(self._environ(), self.start_response)
        try:
            if type(result) in (list, tuple) and len(result) == 1 and not self._sent:  # type: ignore[arg-type]
                self._finish_whole(result[0])  # type: ignore[index]
                return
            for data in result:
                if data:
                    self._send(data)
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()
        self._finish()

    def _environ(self) -> Environ:
        request, connection = self._request, self._connection
        environ: Environ = {
            **connection.base,
            **request.variables,
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path if request.path != "*" else "",
            "QUERY_STRING": request.query,
            "SERVER_PROTOCOL": "HTTP/1.0" if request.http10 else "HTTP/1.1",
            HOST_KEY: self,
        }
        if request.live:
            if not self._service.take_reader():
                raise RefusedError("503 Service Unavailable", "too many bodies are waited for")
            self._reads = True
            self._live = LiveBody(connection, self._end_reading)
            environ["wsgi.input"] = io.BufferedReader(self._live)
        else:
            environ["wsgi.input"] = io.BytesIO(request.body)
            if environ.pop("HTTP_TRANSFER_ENCODING", None) is not None:
                environ["CONTENT_LENGTH"] = str(request.size)
        return environ

    # ------------------------------------------------------------ writing

    def _begin(self, whole: int | None) -> bytes:
        """Return the head, now that the body begins or is known to be ``whole`` bytes long."""
        head = self._head
        if head is None:
            raise AppError("the application did not call start_response")
        connection = self._connection
        self.code = head.code
        connection.closes |= (
            head.close
            or self._service.ending
            or (self._live is not None and not self._live.is_read())
        )
        more = []
        if head.length is None and not head.bare:
            if whole is not None:
                head.length = whole
                more.append(f"Content-Length: {whole}\r\n")
            elif self._request.http10:
                connection.closes = True
            elif self._request.method != "HEAD":
                more.append("Transfer-Encoding: chunked\r\n")
        if connection.closes:
            more.append("Connection: close\r\n")
        return head.encode(*more)

    def _frame(self, data: bytes) -> bytes:
        """Return a part of the body as it goes over the wire."""
        head = self._head
        assert head is not None
        if type(data) is not bytes:
            raise AppError("an application's body is made of bytes")
        if head.bare or self._request.method == "HEAD":
            return b""
        self._written += len(data)
        if head.length is not None:
            if self._written > head.length:
                raise AppError("the body is longer than its Content-Length")
            return data
        return data if self._request.http10 else b"%x\r\n%b\r\n" % (len(data), data)

    def _send(self, data: bytes) -> None:
        head = b"" if self._sent else self._begin(None)
        framed = head + self._frame(data)
        if self._head is not None and self._written == self._head.length:
            # Its client will know that it has all, and may come with the next one at once.
            self._end_reading()
            self._connection.unweigh()
        self._put(framed)

    def _put(self, data: bytes) -> None:
        if data:
            self._sent = True
            if self._outlived and not self.rest:
                # No thread may wait for its client any more: the places bound how many do.
                self.rest = data
                return
            data, self.rest = self.rest + data, b""
            try:
                self._connection.send(data)
            except OSError as error:
                raise _Broken(str(error)) from None

    def _finish_whole(self, data: bytes) -> None:
        """The body is one piece: head and body go out together, and nobody waits for it."""
        first = self._begin(len(data))
        self.rest = first + (self._frame(data) if data else b"")
        self._check_complete()

    def _finish(self) -> None:
        head = self._head
        if not self._sent:
            self.rest = self._begin(0)
        elif head is not None and head.length is None and not head.bare:
            chunked = not self._request.http10 and self._request.method != "HEAD"
            self.rest += _LAST if chunked else b""
        self._check_complete()

    def _check_complete(self) -> None:
        head = self._head
        assert head is not None
        if head.length is None or head.bare or self._request.method == "HEAD":
            return
        if self._written < head.length:
            _log.error("! the application's body is shorter than its Content-Length")
            self._connection.closes = True  # so that the client can tell

    def _fail(self) -> None:
        """Answer for an application that failed: with a 500, or by breaking the answer off."""
        _log.exception("! the application failed: %s", self._request.method)
        connection = self._connection
        connection.closes = True
        if self._sent:
            self.rest = b""
            raise _Broken("the application failed in the middle of its answer")
        self.code = 500
        self._written = 0
        self.rest = canned("500 Internal Server Error", "the application failed")
        if self._request.method == "HEAD":
            self.rest = self.rest[: self.rest.index(b"\r\n\r\n") + 4]


class _Broken(ConnectionError):
    """Writing failed: the client's doing, not the application's."""
