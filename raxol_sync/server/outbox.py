"""The bounded queue between a server and one reader of its messages (row S20). Floor 2.

Everything that a connection is sent goes through its outbox, in the order that was decided under
the server's lock. A thread of the outbox's own calls the consumer, so a consumer that is slow or
stuck stalls only itself; one whose queue runs full, or that raises, loses its connection.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from raxol_sync._deadline import Deadline

Json = dict[str, Any]
Consumer = Callable[[Json], object]

MAX_MESSAGES = 4096
MAX_BYTES = 64 * 2**20  # bytes, of text as ``weight`` counts it

_log = logging.getLogger("raxol_sync.server")


class _State:
    """What the thread shares with its outbox; it must not keep the outbox itself alive."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.queue: queue.SimpleQueue[tuple[Json, int, Hashable] | None] = queue.SimpleQueue()
        # Guards: waiting, bytes, kinds, closed. Leaf; taken under the server's lock.
        self.lock = threading.Lock()
        self.waiting = 0
        self.bytes = 0
        self.kinds: set[Hashable] = set()  # of which only one message may wait
        self.closed = False
        self.on_end: Callable[[bool], object] | None = None


class Outbox:
    """A queue of messages and the thread that hands them to ``consumer``. Thread-safe.

    The thread ends when the outbox is closed, when its consumer raises, or when it is collected.
    """

    def __init__(
        self,
        consumer: Consumer,
        name: str,
        *,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.consumer = consumer
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._state = _State(consumer)
        # Daemon: a consumer that is stuck must not hold up the interpreter's exit.
        self.thread = threading.Thread(target=_run, args=(self._state,), name=name, daemon=True)
        weakref.finalize(self, self._state.queue.put, None).atexit = False

    def start(self, on_end: Callable[[bool], object]) -> None:
        """Start the thread. Call it once, outside any lock.

        ``on_end(broken)`` is called as the thread's last act; ``broken``: the consumer raised.
        """
        self._state.on_end = on_end
        self.thread.start()

    def put(
        self,
        message: Json,
        size: int | None = None,
        *,
        only: Hashable = None,
        last: bool = False,
    ) -> bool:
        """Queue a message; return ``False`` where there is no room for it. Never blocks.

        A closed outbox drops it. ``size`` is its ``weight``, for callers that hold a lock and have
        counted it before. ``only`` names a kind of which at most one waits (a second one says
        nothing new). After ``last`` the outbox closes itself.
        """
        if size is None:
            size = weight(message)
        state = self._state
        with state.lock:
            if state.closed or (only is not None and only in state.kinds):
                return True
            full = state.waiting >= self._max_messages or state.bytes + size > self._max_bytes
            if full and state.waiting:  # one message larger than the bound may pass an empty box
                return False
            if only is not None:
                state.kinds.add(only)
            state.waiting += 1
            state.bytes += size
            state.queue.put((message, size, only))
            if last:
                state.closed = True
                state.queue.put(None)
        return True

    def close(self) -> None:
        """Take no more messages; what is queued is still handed over. Never blocks."""
        with self._state.lock:
            if not self._state.closed:
                self._state.closed = True
                self._state.queue.put(None)

    def join(self, deadline: Deadline) -> bool:
        """Wait for the thread to end, unless it is the caller's; return whether it has."""
        thread = self.thread
        if thread is threading.current_thread() or thread.ident is None:
            return True
        thread.join(deadline.left())
        return not thread.is_alive()


def _run(state: _State) -> None:
    broken = not _consume(state)
    if broken:
        with state.lock:
            state.closed = True
    if state.on_end is not None:
        state.on_end(broken)


def _consume(state: _State) -> bool:
    """Hand over messages until the queue's end; return ``False`` if the consumer raised."""
    while True:
        entry = state.queue.get()
        if entry is None:
            return True
        message, size, only = entry
        with state.lock:
            state.waiting -= 1
            state.bytes -= size
            state.kinds.discard(only)
        try:
            state.consumer(message)
        except BaseException as error:  # user code or I/O: its connection ends, the server goes on
            # A peer that went away is no fault of ours; anything else deserves its trace.
            gone = isinstance(error, (BrokenPipeError, ConnectionError))
            _log.info("! a subscriber went away: %s", type(error).__name__, exc_info=not gone)
            return False
        del entry, message


def weight(message: object, limit: int = MAX_BYTES) -> int:
    """Return roughly how many bytes a message takes: its strings, and 16 for everything else.

    Counting stops past ``limit``: a value that holds itself has no end.
    """
    total = 0
    stack = [message]
    while stack and total <= limit:
        value = stack.pop()
        if type(value) is str:
            total += len(value)
        elif type(value) is dict:
            total += 16 * len(value)
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            total += 16 * len(value)
            stack.extend(value)
    return total
