"""One connection: its socket, what has come, what is still to be written. Floor 2.

Not thread-safe but for what is said to be: one thread has a connection at a time (see the package).
Nothing waits but for a deadline. A socket without TLS is left in blocking mode where the system can
be asked for one call not to wait: a thread that keeps a connection then needs one system call, and
gives up the interpreter's lock once, to wait for the next request and to read it.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

from raxol_sync._deadline import now
from raxol_sync.server.web.limits import Limits
from raxol_sync.server.web.parsing import BODY, IDLE, Memory, Parser, RefusedError, Request
from raxol_sync.server.web.poller import READ, WRITE, await_ready

_log = logging.getLogger("raxol_sync.server")

_CHUNK = 64 * 1024  # bytes for one read
_DISCARD = 64 * 1024 * 1024  # bytes that a refused client may still send before it is cut off

# Only Linux is known to take both, and the time in this form.
_NOW = socket.MSG_DONTWAIT if sys.platform == "linux" else 0

PARKED, QUEUED, RUNNING, CLOSED = "parked", "queued", "running", "closed"
"""Who has it: the poller, the crew's queue, a thread, nobody."""
HANDSHAKE, ASK, FLUSH, DRAIN = "handshake", "ask", "flush", "drain"
"""What it is about: TLS, the next request, an answer's rest, what a refused client still sends."""


class GoneError(ConnectionError):
    """The client is gone, or too slow to be waited for any longer."""


class Connection:
    """A client's connection.

    Attributes:
        sock: its socket.
        descriptor: the socket's number, for the poller.
        state: who has it.
        phase: what it is about.
        deadline: while it is parked: the moment at which it is given up.
        awaits: what it is parked for, ``READ`` or ``WRITE``.
        since: when it came or was answered last.
        begun: when what is being read began: a request's head, or its body.
        fresh: no request has come yet.
        closes: it ends with the answer that is being written.
        client: its address, as a log names it.
        queued: when it was handed to the crew.
        base: the variables that all its requests share.
        weighed: bytes of its body that the server has counted.
    """

    __slots__ = (
        "_discarded",
        "_flushed_by",
        "_gone",
        "_limits",
        "_lock",
        "_now_flag",
        "_rest",
        "_watchers",
        "_weigh",
        "awaits",
        "base",
        "begun",
        "client",
        "closes",
        "deadline",
        "descriptor",
        "fresh",
        "parser",
        "phase",
        "queued",
        "since",
        "sock",
        "state",
        "weighed",
    )

    def __init__(
        self,
        sock: socket.socket,
        base: dict[str, Any],
        client: str,
        limits: Limits,
        weigh: Callable[[int], bool],
        memory: Memory,
    ) -> None:
        self.sock = sock
        self._weigh = weigh
        self.descriptor = sock.fileno()
        self.base = base
        self.client = client
        self._limits = limits
        self.parser = Parser(limits, memory)
        self._now_flag = 0
        if _NOW and limits.linger > 0 and not isinstance(sock, ssl.SSLSocket):
            seconds, rest = divmod(limits.linger, 1)
            wait = struct.pack("ll", int(seconds), max(1, int(rest * 1e6)))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
            sock.setblocking(True)
            self._now_flag = _NOW
        self.state = PARKED
        self.phase = HANDSHAKE if isinstance(sock, ssl.SSLSocket) else ASK
        self.awaits = READ
        self.since = self.begun = self.queued = now()
        self.deadline = self.since + limits.header_timeout
        self.fresh = True
        self.closes = False
        self.weighed = 0
        self._rest = memoryview(b"")
        self._flushed_by = 0.0
        self._discarded = 0
        # Guards: _watchers, _gone. Leaf.
        self._lock = threading.Lock()
        self._watchers: list[Callable[[], object]] | None = None
        self._gone = False

    # ------------------------------------------------------------ reading

    def shake(self) -> bool:
        """Go on with the handshake of TLS; return whether it is done.

        Raises:
            OSError: it failed.
        """
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self.awaits = READ
            return False
        except ssl.SSLWantWriteError:
            self.awaits = WRITE
            return False
        self.phase, self.awaits = ASK, READ
        return True

    def receive(self, linger_until: float = 0.0) -> Request | None:
        """Read what is there; return the next request if that makes it whole.

        Until the moment ``linger_until`` it may wait for more to come, for a short while.

        Raises:
            RefusedError: it is no request that we take.
            GoneError: the client has closed the connection between two requests.
            OSError: the connection is broken.
        """
        parser = self.parser
        while True:
            before = parser.stage
            request = parser.next()
            self.weigh_body()
            if request is not None:
                return request
            if parser.stage is BODY and before is not BODY:
                self.begun = now()  # the body has time of its own
            data = self._read_patiently() if linger_until > now() else self._read()
            if data is None:
                return None
            if not data and parser.stage is IDLE:
                raise GoneError("the client has closed the connection")
            if parser.stage is IDLE and not self.fresh:
                self.begun = now()  # the first byte
            parser.feed(data)
            if self.request_deadline() < now():
                raise RefusedError("408 Request Timeout", "the request took too long")

    def weigh_body(self) -> None:
        """Have what has come of a body counted, if it is worth the while.

        Raises:
            RefusedError: all bodies together are too large.
        """
        more = self.parser.received - self.weighed
        if more <= _CHUNK:
            return
        self.weighed += more
        if not self._weigh(more):
            raise RefusedError("503 Service Unavailable", "too many large bodies at once")

    def unweigh(self) -> None:
        """Its body is let go of."""
        if self.weighed:
            self._weigh(-self.weighed)
            self.weighed = 0

    def read_more(self) -> None:
        """Wait for more of a body that is read while the application runs.

        Raises:
            OSError: none came in time.
        """
        while (data := self._read()) is None:
            if not self.wait(write=False, seconds=self.request_deadline() - now()):
                raise GoneError("the body did not come in time")
        self.parser.feed(data)
        if self.request_deadline() < now():
            raise GoneError("the body took too long")

    def _read(self) -> bytes | None:
        """Return what can be read now: nothing at the end, ``None`` if it would wait."""
        try:
            flag = self._now_flag
            return self.sock.recv(_CHUNK, flag) if flag else self.sock.recv(_CHUNK)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except ssl.SSLEOFError:
            return b""

    def _read_patiently(self) -> bytes | None:
        """Return what can be read within the time that a thread lingers."""
        if self._now_flag:
            try:
                return self.sock.recv(_CHUNK)  # the system knows how long
            except (BlockingIOError, InterruptedError):
                return None
        data = self._read()
        if data is None and self.wait(write=False, seconds=self._limits.linger):
            data = self._read()
        return data

    def request_deadline(self) -> float:
        """Until when the request, or the first byte of it, must have come."""
        limits, stage = self._limits, self.parser.stage
        if stage is BODY:
            return self.begun + limits.body_allowance(self.parser.received)
        if stage is IDLE and not self.fresh:
            return self.since + limits.idle_timeout
        return self.begun + limits.header_timeout

    def answered(self) -> None:
        """Begin with the next request."""
        self.since = self.begun = now()
        self.fresh = False
        self.parser.restart()

    def discard(self) -> bool:
        """Read and forget what is there; return whether more may come."""
        for _ in range(16):  # then others have their turn
            try:
                data = self._read()
            except OSError:
                return False
            if data is None:
                return True
            self._discarded += len(data)
            if not data or self._discarded > _DISCARD:
                return False
        return True

    def wait(self, *, write: bool, seconds: float) -> bool:
        """Wait until the socket can be read or written; return whether it can."""
        return await_ready(self.sock, write=write, seconds=seconds)

    # ------------------------------------------------------------ writing

    def _write(self, data: memoryview) -> int | None:
        """Write what goes without waiting; ``None`` says that nothing does."""
        try:
            flag = self._now_flag
            return self.sock.send(data, flag) if flag else self.sock.send(data)
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return None

    def send(self, data: bytes) -> None:
        """Write all of it; wait for the client as long as the limits allow.

        A client that takes nothing has ``write_timeout``, however much there is to take.

        Raises:
            OSError: the client is gone, or does not read.
        """
        rest = memoryview(data)
        sent = self._write(rest)
        if sent == len(rest):
            return
        moved = now()
        deadline = moved + self._limits.write_allowance(len(rest))
        while True:
            rest = rest[sent or 0 :]
            if not rest:
                return
            until = min(deadline, moved + self._limits.write_timeout)
            if sent is None and not self.wait(write=True, seconds=until - now()):
                raise GoneError("the client does not read")
            sent = self._write(rest)
            if sent:
                moved = now()
            if now() >= deadline:
                raise GoneError("the client reads too slowly")

    def last_word(self, data: bytes) -> None:
        """Write it if that goes without waiting."""
        with contextlib.suppress(OSError):
            self._write(memoryview(data))

    def begin_flush(self, data: bytes) -> bool:
        """Write the end of an answer as far as that goes now; return whether all is written."""
        self._rest = memoryview(data)
        self.phase, self.awaits = FLUSH, WRITE
        self._flushed_by = now() + self._limits.write_allowance(len(self._rest))
        self.deadline = min(self._flushed_by, now() + self._limits.write_timeout)
        return self.flush()

    def flush(self) -> bool:
        """Go on with that."""
        while self._rest:
            sent = self._write(self._rest)
            if sent is None:
                return False
            self._rest = self._rest[sent:]
            # As in ``send``: for all of it, and for a client that takes nothing.
            self.deadline = min(self._flushed_by, now() + self._limits.write_timeout)
        self._rest = memoryview(b"")
        self.phase, self.awaits = ASK, READ
        return True

    def begin_drain(self) -> None:
        """Say that nothing more is written, and let the client read that in peace.

        Closing a socket that holds unread bytes would have the system throw our last words away.
        """
        self.phase, self.awaits = DRAIN, READ
        self.begun = now()
        self._discarded = 0
        self.deadline = self.drain_deadline()
        with contextlib.suppress(OSError):
            if isinstance(self.sock, ssl.SSLSocket):
                self._say_goodbye(self.sock)
            else:
                self.sock.shutdown(socket.SHUT_WR)

    def drain_deadline(self) -> float:
        """Until when a client that has just sent something must have sent more."""
        limits, moment = self._limits, now()
        allowed = limits.drain_timeout + self._discarded / limits.min_rate
        return min(moment + limits.drain_timeout, self.begun + allowed)

    @staticmethod
    def _say_goodbye(sock: ssl.SSLSocket) -> None:
        with contextlib.suppress(OSError, ValueError):  # it raises as long as the client says none
            sock.unwrap()

    def close(self) -> None:
        """Close the socket. The poller must not know it any more."""
        with contextlib.suppress(OSError):
            if isinstance(self.sock, ssl.SSLSocket) and self.phase is not HANDSHAKE:
                self._say_goodbye(self.sock)
        with contextlib.suppress(OSError):
            self.sock.close()

    def abort(self) -> None:
        """Break the connection: whoever reads or writes is woken. Thread-safe."""
        # Not SSLSocket's own: it gives up TLS first, and who is writing would go on in plain text.
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    # ------------------------------------------------------------ the client's end

    def begin_watching(self) -> None:
        """A request runs: its application may ask to be told when the client goes."""
        self._watchers = []

    def watch(self, on_gone: Callable[[], object]) -> bool | None:
        """Keep a callback; say whether it is the first, or ``None`` if it is to be called now."""
        with self._lock:
            if self._watchers is None:
                return False
            if self._gone:
                return None
            self._watchers.append(on_gone)
            return len(self._watchers) == 1

    def notice_gone(self) -> None:
        """Call what ``watch`` was given, if an answer is being made. Thread-safe."""
        with self._lock:
            watchers = self._watchers
            if watchers is None:
                return
            self._gone = True
            self._watchers = []
        for on_gone in watchers:
            call_out(on_gone)

    def end_watching(self) -> None:
        """The answer has ended: call nobody any more."""
        with self._lock:
            self._watchers = None
            self._gone = False


def call_out(on_gone: Callable[[], object]) -> None:
    """Tell one who watches."""
    try:
        on_gone()
    except Exception:  # whatever it is, the poller must go on
        _log.exception("! what was to be told of a client's end failed")
