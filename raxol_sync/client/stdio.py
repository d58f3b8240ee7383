"""The stdio transport: a server as a subprocess, one message a line (rows C16, C20). Floor 3.

Threads: a reader for stdout, one for stderr, and a writer that is started only when a pipe was
full. The reader ends on the end of stdout, on the process's exit (a grandchild may keep stdout open
for ever) or on ``close``; all three wake its ``poll``.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from raxol_sync._deadline import Deadline
from raxol_sync.client.frames import Frame
from raxol_sync.client.incoming import parse, shortened
from raxol_sync.client.noise import Noise
from raxol_sync.client.outbox import Outbox
from raxol_sync.client.process import WINDOWS, ServerProcess, environment
from raxol_sync.client.transport import OnLost, OnMessage
from raxol_sync.errors import MessageTooLarge, ServerExited
from raxol_sync.protocol.lines import LineSplitter, Overlong
from raxol_sync.protocol.wire import Malformed

_log = logging.getLogger("raxol_sync.client")

GRACE = 2.0  # seconds for a server to exit after its stdin was closed
TERMINATE = 1.0  # seconds for a server to exit after SIGTERM
LOST_GRACE = 0.2  # seconds of both, for one whose stdout has ended already
EXIT_WAIT = 0.5  # seconds between the end of stdout and the exit status
EXIT_DRAIN = 1.0  # seconds to read what an exited process has left in its stdout
_CHUNK = 1 << 16  # bytes; what a pipe holds
_TAIL_LINES = 64
_TAIL_BYTES = 16 * 1024
_WRITE_POLL = 0.1  # seconds; a poll for writing is not woken when another thread closes the pipe


@dataclass(frozen=True)
class Command:
    """How to start a server. Its repr holds no argument and no environment value."""

    command: str
    args: Sequence[str] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None
    inherit_env: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """The command line, as what is remembered of it is kept."""
        return (self.cwd or "", self.command, *self.args)


class StdioTransport:
    """A ``Transport`` over a subprocess's standard streams. Thread-safe."""

    def __init__(self, command: Command, name: str, *, max_bytes: int, max_frames: int) -> None:
        """``max_bytes`` bounds a line, ``max_frames`` the messages that wait to be written."""
        self._command = command
        self._name = name
        self._max_bytes = max_bytes
        self._outbox = Outbox(
            self._write, self._ensure_writer, max_frames=max_frames, max_bytes=2 * max_bytes
        )
        self._stderr = StderrTail(name)
        self._noise = Noise(name)
        self._answered = False  # a message has come; written by the reader alone
        # Guards: _threads, _closed, _writer_started. Leaf: nothing is called out while it is held.
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._writer_started = False
        self._process: ServerProcess | None = None
        self._wake: tuple[int, int] | None = None  # readable once the readers shall end

    def start(self, on_message: OnMessage, on_lost: OnLost) -> None:
        """Start the process and its readers; see ``Transport.start``."""
        command = self._command
        env = environment(command.env, inherit=command.inherit_env)
        process = ServerProcess(command.command, command.args, env, command.cwd)
        self._process = process
        if not WINDOWS:
            os.set_blocking(process.stdin, False)
            self._wake = os.pipe()
        self._spawn("stderr", lambda: self._stderr.drain(self._readable(process.stderr)))
        self._spawn("reader", lambda: self._read(process, on_message, on_lost))

    def put(self, frame: Frame) -> bool:
        """Queue a frame; see ``Transport.put``."""
        return self._outbox.put(frame)

    def retract(self, frame: Frame) -> bool:
        """Take a frame back; see ``Transport.retract``."""
        return self._outbox.retract(frame)

    def flush(self, *, inline: bool) -> None:
        """Write what is queued; see ``Transport.flush``. Windows has no pipe that never blocks."""
        self._outbox.flush(inline=inline and not WINDOWS)

    def open_stream(self) -> bool:
        """There always is one; see ``Transport.open_stream``."""
        return True

    def complaint(self) -> str:
        """Tell of what is no message on its stdout; see ``Transport.complaint``."""
        return self._noise.words()

    def close(self, deadline: Deadline, *, lost: bool = False) -> None:
        """End the process with its group, join the threads, close the descriptors."""
        with self._lock:
            closed, self._closed = self._closed, True
        process = self._process
        if closed or process is None:
            return
        grace, terminate = (LOST_GRACE, LOST_GRACE) if lost else (GRACE, TERMINATE)
        idle = self._outbox.close(deadline.at_most(2 * _WRITE_POLL))
        if idle:
            process.close_stdin()
        process.end(deadline.at_most(grace), deadline.at_most(terminate))
        self._outbox.mailbox.put("end")
        if self._wake is not None:
            with suppress(OSError):
                os.write(self._wake[1], b"x")
        if self._join(Deadline(2.0)):
            process.close()
            for descriptor in self._wake or ():
                os.close(descriptor)
        else:  # its descriptors stay open: closing them under a thread could hit others' files
            _log.warning("! %s: a thread did not end; its pipes stay open", self._name)

    # ------------------------------------------------------------ threads

    def _spawn(self, role: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(
            target=target,
            name=f"raxol-sync-{self._name}-{role}",
            daemon=True,  # a server that cannot be ended must not hold up the interpreter's exit
        )
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def _join(self, deadline: Deadline) -> bool:
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(deadline.left())
        return not any(thread.is_alive() for thread in threads)

    # ------------------------------------------------------------ writing

    def _write(self, frame: Frame) -> bool:
        """Write what is left of a frame; return false where the pipe is full."""
        process = self._process
        done = sum(frame.written)
        left = memoryview(frame.data)[done:] if done else frame.data
        try:
            # The write and the note of it in one C call: see the outbox on interrupts.
            frame.written.extend(map(os.write, (process.stdin,), (left,)))  # type: ignore[union-attr]
        except BlockingIOError:
            return False
        except (OSError, ValueError):  # the server reads no more; its reader will say so
            frame.written[:] = [len(frame.data)]
        return True

    def _ensure_writer(self) -> None:
        with self._lock:
            if self._writer_started:
                return
            self._writer_started = True
        self._spawn("writer", self._run_writer)

    def _run_writer(self) -> None:
        while self._outbox.mailbox.get() is None:
            while not self._outbox.drain():
                self._wait_writable()

    def _wait_writable(self) -> None:
        process = self._process
        if process is not None and not WINDOWS:
            poller = select.poll()
            poller.register(process.stdin, select.POLLOUT)
            poller.poll(_WRITE_POLL * 1000)

    # ------------------------------------------------------------ reading

    def _readable(self, descriptor: int, pidfd: int | None = None) -> PollReader:
        return PollReader(descriptor, self._wake[0] if self._wake else None, pidfd)

    def _read(self, process: ServerProcess, on_message: OnMessage, on_lost: OnLost) -> None:
        lines = LineSplitter(self._max_bytes)
        reader = self._readable(process.stdout, process.pidfd)
        try:
            while chunk := reader.read():
                for line in lines.feed(chunk):
                    if isinstance(line, Overlong):
                        on_lost(MessageTooLarge(line.limit, "a line on the server's stdout"))
                        return
                    self._take(line, on_message)
        finally:
            self._noise.end()
        if not self._closed:
            code = process.wait(EXIT_WAIT)
            self._stderr.ended.wait(EXIT_WAIT / 2)
            on_lost(ServerExited(code, self._stderr.text(), hint=self._hint(code)))

    def _hint(self, code: int | None) -> str:
        """Return what may be wrong with a server that has ended without a single message."""
        if self._answered:
            return ""
        early = " before it answered; does it call server.run()?" if code == 0 else ""
        return early + self._noise.words()

    def _take(self, line: bytes, on_message: OnMessage) -> None:
        for message in parse(line, max_bytes=self._max_bytes):
            if isinstance(message, Malformed) and message.id is None:
                # Not handed on: nothing can come of it, and there may be very much of it.
                self._noise.take(message.reason, line)
                continue
            self._answered = True
            on_message(message)


class PollReader:
    """Blocking reads that another thread, or a process's exit, can end. For one thread."""

    def __init__(self, descriptor: int, wake: int | None, pidfd: int | None) -> None:
        self._descriptor = descriptor
        self._pidfd = pidfd
        self._last: Deadline | None = None  # after the process has exited
        self._poller = None
        if wake is not None:
            self._poller = select.poll()
            for waited in (descriptor, wake, *(() if pidfd is None else (pidfd,))):
                self._poller.register(waited, select.POLLIN)

    def read(self) -> bytes:
        """Return the next bytes, ``b""`` at the end. What is readable is returned first."""
        if self._poller is not None:
            ready = [descriptor for descriptor, _ in self._poller.poll()]
            if self._descriptor not in ready:
                return b""
            if len(ready) > 1 and self._pidfd in ready:
                self._last = self._last or Deadline(EXIT_DRAIN)
                if self._last.expired():  # a grandchild goes on writing
                    return b""
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:
            return b""


class StderrTail:
    """Drains a server's stderr: keeps the last lines, logs them at DEBUG. Thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: deque[bytes] = deque(maxlen=_TAIL_LINES)  # appended by one thread
        self.ended = threading.Event()

    def drain(self, reader: PollReader) -> None:
        """Read until the end; runs on the stderr thread."""
        rest = b""
        try:
            while chunk := reader.read():
                *lines, rest = (rest + chunk).split(b"\n")
                self._keep(lines)
                rest = rest[-_TAIL_BYTES:]
            self._keep([rest])
        finally:
            self.ended.set()

    def text(self) -> str:
        """Return the last lines, at most 64 of them and 16 KiB."""
        joined = b"\n".join(list(self._lines))[-_TAIL_BYTES:]
        return joined.decode("utf-8", "replace").strip()

    def _keep(self, lines: list[bytes]) -> None:
        for line in lines:
            if line.strip():
                self._lines.append(line[-_TAIL_BYTES:].rstrip())
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("< %s stderr: %s", self._name, shortened(line, 400))


# ---------------------------------------------------------------- servers that exit on the probe

_MAX_REMEMBERED = 256
# Guards: _remembered. Leaf.
_remembered_lock = threading.Lock()
_remembered: dict[tuple[str, ...], None] = {}


def exits_on_probe(command: Command) -> bool:
    """Return whether this command line is known to exit on ``server/discover`` (row C22)."""
    with _remembered_lock:
        return command.key in _remembered


def remember_exit_on_probe(command: Command, exits: bool) -> None:
    """Remember, or forget, that a command line exits on ``server/discover``."""
    with _remembered_lock:
        _remembered.pop(command.key, None)
        if exits:
            _remembered[command.key] = None
            if len(_remembered) > _MAX_REMEMBERED:
                del _remembered[next(iter(_remembered))]
