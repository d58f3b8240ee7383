"""Serving one client over this process's stdin and stdout. Floor 3. Spec: basic/transports/stdio.

Theory of operation. The protocol owns duplicates of the descriptors 0 and 1 that nobody else knows.
Descriptor 1 itself, and so ``print`` and every child process, leads to stderr while we serve;
descriptor 0 leads to nothing. Bytes are read and written as such: no locale takes part.

Threads: the calling thread waits for the end; a reader thread cuts lines and hands messages to the
server; the connection's outbox thread writes. The reader never writes, so a client that does not
read its answers cannot keep us from reading its cancellations.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from raxol_sync._deadline import Deadline
from raxol_sync.errors import INTERNAL_ERROR, INVALID_REQUEST
from raxol_sync.protocol import wire
from raxol_sync.protocol.lines import LineSplitter, Overlong
from raxol_sync.server.batch import MAX_BATCH, batchable
from raxol_sync.server.ending import Ended, signals
from raxol_sync.server.engine import Engine
from raxol_sync.server.forks import on_fork
from raxol_sync.server.outbox import Box, Consumer, Outbox

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")

_CHUNK = 64 * 1024  # bytes for one read: a pipe's capacity; larger buffers cost a mapping each
_LAST_CALLS = 0.5  # seconds that calls in flight get when the client closed stdin
_GRACE = 1.0  # seconds that threads get to end


class Door(Protocol):
    """The part of ``Server`` that a transport needs."""

    def request(
        self,
        message: object,
        conn_id: object,
        *,
        sink: Consumer | Box | None = None,
        owner: object = None,
    ) -> Future[Json | None]:
        """As ``Server.request``."""

    def close(self, grace: float | None) -> None:
        """As ``Server.close``."""


def serve(server: Door, engine: Engine, name: str = "the server") -> None:
    """Serve until stdin ends, a signal comes, the client stops reading, or the server closes."""
    _claim_stderr()
    _say_to_people(name)
    with signals() as ended, contextlib.closing(Ended()) as stop:
        streams = _Streams()
        transport = _Stdio(server, engine, streams, ended.set, stop)
        try:
            transport.start()
            ended.wait()
        finally:
            transport.finish()
            streams.restore(reader_ended=not transport.reading)


class _Stdio:
    """One client's messages in and out."""

    def __init__(
        self,
        server: Door,
        engine: Engine,
        streams: _Streams,
        ended: Callable[[], None],
        stop: Ended,
    ) -> None:
        self._server = server
        self._engine = engine
        self._source = streams.source
        self._target = streams.target
        self._ended = ended
        self._stop = stop
        self._conn_id = object()
        quick = self._write_now if streams.takes_quick_writes else None
        self._outbox = Outbox(self._write, "raxol-sync-stdio-writer", quick=quick)
        self._writable = select.poll() if quick is not None else None
        if self._writable is not None:
            self._writable.register(self._target, select.POLLOUT)
        self._at_end = False
        on_fork(self.forked)
        # Guards: _batches, those that lack a response. Leaf.
        self._lock = threading.Lock()
        self._batches: set[_Batch] = set()
        # Daemon: where select knows no pipes nothing can wake it.
        self._reader = threading.Thread(
            target=self._read, name="raxol-sync-stdio-reader", daemon=True
        )

    def start(self) -> None:
        """Begin to read and write."""
        self._engine.attach(self._conn_id, self._outbox, self._ended, transport="stdio")
        self._reader.start()

    def forked(self) -> None:
        """In a child that a callback forked: what it may still say reaches no client."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (self._source, self._target):
            with contextlib.suppress(OSError):  # closed: the service is over
                os.dup2(nothing, descriptor)
        os.close(nothing)

    @property
    def reading(self) -> bool:
        """Whether the reader still waits for the client."""
        return self._reader.is_alive()

    def finish(self) -> None:
        """Let calls in flight end for a moment if the client only closed its side; close."""
        self._stop.set()
        if self._at_end:
            deadline = Deadline(_LAST_CALLS)
            self._engine.wait_idle(deadline)
            with self._lock:
                batches = list(self._batches)
            for batch in batches:
                batch.complete.wait(deadline.left())
        for call in self._engine.outstanding():
            if call.method != "subscriptions/listen":  # those end with their result
                self._engine.cancel(call)  # and so close() waits for no callback
        deadline = Deadline(_GRACE)
        self._server.close(deadline.left())
        if self._reader.ident is not None and self._stop.selectable:
            self._reader.join(deadline.left())

    def _write(self, message: Json | list[Json]) -> None:
        """Write one message, or one batch of them; runs on the outbox's thread only."""
        data = self._encode_batch(message) if isinstance(message, list) else self._encode(message)
        if not data:
            return
        view = memoryview(data + b"\n")
        while view:
            view = view[os.write(self._target, view) :]

    def _write_now(self, message: Json | list[Json], size: int) -> bool:
        """Write a short message if the pipe has room for it; it then takes all of it at once.

        POSIX: a write of at most PIPE_BUF bytes to a pipe that is writable does not block and is
        not split. Whatever else there is, is the outbox's thread's: return false.
        """
        if size > select.PIPE_BUF or isinstance(message, list) or self._writable is None:
            return False
        data = self._encode(message) + b"\n"
        if len(data) > select.PIPE_BUF or len(data) == 1:
            return False
        try:
            ready = self._writable.poll(0)
            return bool(ready) and ready[0][1] == select.POLLOUT and self._put(data)
        except OSError:  # the client is gone: the thread finds out, and ends the connection
            return False

    def _put(self, data: bytes) -> bool:
        return os.write(self._target, data) == len(data)

    def _encode(self, message: Json) -> bytes:
        """Return a message as JSON; nothing for a notification that cannot be sent."""
        try:
            data = wire.encode(message)
        except wire.EncodeError as error:
            return _instead(message, str(error))
        return data if len(data) <= wire.MAX_MESSAGE_BYTES else _instead(message, _too_long(data))

    def _encode_batch(self, messages: list[Json]) -> bytes:
        """Return a batch as one array; its longest parts give way where it would be too long."""
        parts = [self._encode(message) for message in messages]
        left = sum(map(len, parts)) + len(parts) + 1 - wire.MAX_MESSAGE_BYTES
        for place in sorted(range(len(parts)), key=lambda place: -len(parts[place])):
            if left <= 0:
                break
            shorter = _instead(messages[place], f"{_too_long(parts[place])} together with others")
            left -= len(parts[place]) - len(shorter)
            parts[place] = shorter
        found = [part for part in parts if part]
        return b"[" + b",".join(found) + b"]" if found else b""

    def _read(self) -> None:
        splitter = LineSplitter(wire.MAX_MESSAGE_BYTES)
        try:
            while data := self._chunk():
                for line in splitter.feed(data):
                    self._take(line)
            if data is not None:
                for line in splitter.end():
                    self._take(line)
                self._at_end = True
        except OSError as error:  # the terminal or the pipe is gone
            _log.info("! stdin failed: %s", error)
        finally:
            self._ended()

    def _chunk(self) -> bytes | None:
        """Return what can be read next: nothing at the end, ``None`` once we are to stop."""
        if self._stop.selectable:
            ready = select.select([self._source, self._stop.descriptor], [], [])[0]
            if self._stop.descriptor in ready:
                return None
        return os.read(self._source, _CHUNK)

    def _take(self, line: bytes | Overlong) -> None:
        """Hand one line to the server. Never raises for what a client can send."""
        if isinstance(line, Overlong):
            value: object = wire.Malformed(
                INVALID_REQUEST, f"the message is longer than {line.limit} bytes"
            )
        else:
            value = wire.decode(line)
        if type(value) is list and self._engine.revision_of(self._conn_id).batches:
            self._take_batch(value)
        else:
            self._server.request(value, self._conn_id, sink=self._outbox, owner=None)

    def _take_batch(self, values: list[Any]) -> None:
        """Handle the messages of one batch; their responses go out as one array."""
        if not 0 < len(values) <= MAX_BATCH:
            reason = f"a batch must hold 1 to {MAX_BATCH} messages"
            bad = wire.Malformed(INVALID_REQUEST, reason)
            self._server.request(bad, self._conn_id, sink=self._outbox, owner=None)
            return
        batch = _Batch(len(values), self._finish_batch)
        with self._lock:
            self._batches.add(batch)
        for value in values:
            self._server.request(batchable(value), self._conn_id, owner=None).add_done_callback(
                batch.add
            )

    def _finish_batch(self, batch: _Batch) -> None:
        if batch.responses:
            self._engine.send(self._conn_id, batch.responses, self._outbox)
        with self._lock:
            self._batches.discard(batch)
        batch.complete.set()


def _too_long(data: bytes) -> str:
    return f"it has {len(data)} bytes, and a message may have {wire.MAX_MESSAGE_BYTES}"


def _instead(message: Json, why: str) -> bytes:
    """Return what is sent for a message that cannot be: an error, or nothing if nobody waits."""
    if "id" not in message or "method" in message:
        _log.error("! %s cannot be sent: %s", message.get("method", "a message"), why)
        return b""
    _log.error("! a result cannot be sent: %s", why)
    reason = f"the result cannot be sent: {why}"
    return wire.encode(wire.error(message["id"], INTERNAL_ERROR, reason))


class _Batch:
    """Collects the responses to one batch, until all are there. Thread-safe."""

    def __init__(self, size: int, finish: Callable[[_Batch], None]) -> None:
        self._finish = finish
        # Guards: _missing, responses. Leaf.
        self._lock = threading.Lock()
        self._missing = size
        self.responses: list[Json] = []
        self.complete = threading.Event()

    def add(self, future: Future[Json | None]) -> None:
        """Take one settled future."""
        response = future.result()
        with self._lock:
            self._missing -= 1
            if response is not None:
                self.responses.append(response)
            complete = self._missing == 0
        if complete:
            self._finish(self)


# ---------------------------------------------------------------- the process around it


class _Streams:
    """Keeps stdin and stdout for the protocol alone, until ``restore``.

    Attributes:
        source: the descriptor that reads the client's messages.
        target: the descriptor that its answers are written to.
        takes_quick_writes: whether that is a pipe of which we can tell if it has room.
    """

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        nothing = os.open(os.devnull, os.O_RDWR)
        self.source, self.target = os.dup(0), os.dup(1)
        for descriptor in (self.source, self.target):
            # Whoever made the pipe may have left it in another mode; we wait in read and write.
            with contextlib.suppress(OSError, AttributeError):
                os.set_blocking(descriptor, True)
        is_pipe = stat.S_ISFIFO(os.fstat(self.target).st_mode)
        self.takes_quick_writes = is_pipe and hasattr(select, "poll")
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
        if sys.platform == "win32":  # no translation of line ends
            import msvcrt

            for descriptor in (self.source, self.target):
                msvcrt.setmode(descriptor, os.O_BINARY)

    def restore(self, *, reader_ended: bool) -> None:
        """Put the descriptors 0 and 1 back.

        While the reader still waits on ``source`` that one stays open: its number could otherwise
        become another file's, and the reader would read from that.
        """
        _flush(sys.stdout)  # what callbacks printed belongs on stderr
        os.dup2(self.source, 0)
        os.dup2(self.target, 1)
        os.close(self.target)
        if reader_ended:
            os.close(self.source)


def _claim_stderr() -> None:
    """Without a stderr let descriptor 2 lead to nothing, before it becomes something of ours."""
    try:
        os.fstat(2)
    except OSError:
        nothing = os.open(os.devnull, os.O_RDWR)
        if nothing == 2:
            os.set_inheritable(nothing, True)  # as children expect it
        else:
            os.dup2(nothing, 2)
            os.close(nothing)


def _say_to_people(name: str) -> None:
    """Where a person is at the other end of stdin: tell them what this waits for."""
    if not os.isatty(0) or sys.stderr is None:
        return
    import shlex  # for people only

    program = getattr(sys.modules.get("__main__"), "__file__", None)  # none where Python is typed
    command = shlex.join(sys.orig_argv) if program is not None else "python FILE"
    sys.stderr.write(
        f"{name} waits for a client on stdin, which programs that speak MCP start by themselves; "
        f"to try it: raxol-sync tools -- {command} (Ctrl-C ends this)\n"
    )
    sys.stderr.flush()


def _flush(stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, replaced, or None
        stream.flush()
