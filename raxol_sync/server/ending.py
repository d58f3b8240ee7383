"""The end of a service that a thread waits for: by a signal, or by anyone who says so. Floor 2."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from raxol_sync.server.forks import on_fork

ENDING = (signal.SIGINT, signal.SIGTERM)
_SET = 255  # no signal's number


class Ended:
    """An event that a signal handler may set: the handler runs inside the very wait for it.

    ``threading.Event`` takes a lock in both, so a handler could wait for the thread that it
    interrupted. A byte in a pipe needs no lock.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        self._closed = False
        # On Windows select knows sockets only; elsewhere numbers up to 1023.
        self.selectable = sys.platform != "win32" and self._read_end < 1000

    @property
    def descriptor(self) -> int:
        """What becomes readable when it is set."""
        return self._read_end

    def set(self) -> None:
        """Let ``wait`` return. Safe in signal handlers and in any thread."""
        with contextlib.suppress(OSError):  # closed: the wait is over anyway
            if not self._closed:
                os.write(self._write_end, bytes([_SET]))

    def wait(self) -> None:
        """Wait until ``set`` was called or a signal of ``ENDING`` came."""
        with contextlib.suppress(KeyboardInterrupt):
            while os.read(self._read_end, 1)[0] not in (_SET, *ENDING):
                continue  # another signal, which has a handler of the program's

    @contextlib.contextmanager
    def told_of_signals(self) -> Iterator[None]:
        """Have each signal's number written here by the interpreter, in whatever thread it comes.

        The main thread may be on its way into the system call that waits, or the signal be
        delivered to another thread: then that call would not end, and no handler would run.
        """
        os.set_blocking(self._write_end, False)
        before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)

    def close(self) -> None:
        """Close the pipe."""
        self._closed = True
        os.close(self._write_end)
        os.close(self._read_end)


class _Handlers:
    """Our handler for the signals of ``ENDING``, in place of those that were there before.

    A forked child gets those back: its parent's pipe is its own, too, so that a signal to the child
    would end the parent, and the child would go on.
    """

    def __init__(self, handle: Callable[[int, FrameType | None], None]) -> None:
        self._previous: dict[int, Any] = {n: signal.signal(n, handle) for n in ENDING}
        on_fork(self.forked)

    def restore(self) -> None:
        """Put those before back, once."""
        previous, self._previous = self._previous, {}
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def forked(self) -> None:
        """In the child. It may have been forked by any thread, which is its main thread then."""
        if self._previous:
            signal.set_wakeup_fd(-1)
        self.restore()


@contextlib.contextmanager
def signals() -> Iterator[Ended]:
    """Have SIGINT and SIGTERM end the service, where this thread may say so."""
    ended = Ended()
    handlers: _Handlers | None = None

    def handle(number: int, frame: FrameType | None) -> None:
        ended.set()

    if threading.current_thread() is threading.main_thread():
        handlers = _Handlers(handle)
    try:
        with ended.told_of_signals() if handlers is not None else contextlib.nullcontext():
            yield ended
    finally:
        if handlers is not None:
            handlers.restore()
        ended.close()
