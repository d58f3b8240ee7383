"""The bounded queue between a server and one reader of its messages (row S20). Floor 2.

Everything that a connection is sent goes through its outbox, in the order that was decided under
the server's lock. A thread of the outbox's own calls the consumer, so a consumer that is slow or
stuck stalls only itself; one whose queue runs full, or that raises, loses its connection.

There is one *writer's role*; whoever has it delivers, so messages leave one by one and in order. A
transport that can tell whether a delivery would block gives ``quick``: then the thread that caused
a message may deliver it at once, in ``flush``, which saves waking another thread. What ``quick``
declines is left to the outbox's thread, which may block.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from raxol_sync._deadline import Deadline

Json = dict[str, Any]
Consumer = Callable[[Json], object]
Quick = Callable[[Json, int], bool]

MAX_MESSAGES = 4096
MAX_BYTES = 64 * 2**20  # bytes, of text as ``weight`` counts it
PATIENCE = 1.0  # seconds that a callback waits once for a consumer that is behind

_log = logging.getLogger("raxol_sync.server")


class _Entry(NamedTuple):
    """One message that waits, with its weight and the kind of which it is the only one."""

    message: Json
    size: int
    only: Hashable


class _State:
    """What the thread shares with its outbox; it must not keep the outbox itself alive.

    ``wakes`` holds a true for each time that it should look, and a false for the end.
    """

    def __init__(self, consumer: Consumer, quick: Quick | None, low: int) -> None:
        self.consumer = consumer
        self.quick = quick
        self.low = low  # with so many or fewer waiting there is room again
        self.wakes: queue.SimpleQueue[bool] = queue.SimpleQueue()

        # Guards: waiting, bytes, kinds, closed. Leaf; taken under the server's lock.
        self.lock = threading.Lock()
        self.waiting: deque[_Entry] = deque()
        self.bytes = 0
        self.kinds: set[Hashable] = set()  # of which only one message may wait
        self.closed = False
        self.role = threading.Lock()  # the writer's role; held while a message is delivered
        self.room = threading.Event()  # clear while half of what may wait does
        self.room.set()
        self.stuck = False  # somebody has waited for room, and there came none
        self.on_end: Callable[[bool], object] | None = None

    def pop(self) -> _Entry | None:
        """Take the oldest message out."""
        with self.lock:
            if not self.waiting:
                return None
            entry = self.waiting.popleft()
            self.bytes -= entry.size
            self.kinds.discard(entry.only)
            if len(self.waiting) <= self.low and (self.stuck or not self.room.is_set()):
                self.stuck = False
                self.room.set()
            return entry


class Box:
    """Where messages of a connection, or of one request, are put. Thread-safe.

    Attributes:
        thread: what hands them over, ``None`` where their reader comes for them itself.
        consumer: whom it hands them to.
        own: it serves one request alone and ends with it.
        counts: what it is given must be weighed.
    """

    thread: threading.Thread | None = None
    consumer: Consumer | None = None
    own = False
    counts = True

    def put(
        self,
        message: Any,
        size: int | None = None,
        *,
        only: Hashable = None,
        last: bool = False,
        flushed: bool = False,
    ) -> bool:
        """Queue a message; return ``False`` where there is no room for it. Never blocks.

        A closed box drops it. ``size`` is its ``weight``, for callers that hold a lock and have
        counted it before. ``only`` names a kind of which at most one waits (a second one says
        nothing new). After ``last`` the box closes itself. ``flushed``: the caller promises to
        call ``flush`` as soon as it holds no lock.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Take no more messages; what is queued is still handed over. Never blocks."""
        raise NotImplementedError

    def start(self, on_end: Callable[[bool], object]) -> None:
        """Start the thread, if there is one. Call it once, outside any lock.

        ``on_end(broken)`` is called as the thread's last act; ``broken``: the consumer raised.
        """

    def flush(self) -> None:
        """Deliver what waits, if that can be done here and now. Call it outside locks."""

    def ease(self, seconds: float = PATIENCE) -> None:
        """Wait for the reader while it is far behind, at most that long. Call it outside locks."""

    def join(self, deadline: Deadline) -> bool:
        """Wait for the thread to end, unless it is the caller's; return whether it has."""
        thread = self.thread
        if thread is None or thread is threading.current_thread() or thread.ident is None:
            return True
        thread.join(deadline.left())
        return not thread.is_alive()


class Outbox(Box):
    """A queue of messages and the thread that hands them to ``consumer``. Thread-safe.

    The thread ends when the outbox is closed, when its consumer raises, or when it is collected.
    """

    def __init__(
        self,
        consumer: Consumer,
        name: str,
        *,
        quick: Quick | None = None,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """``quick(message, weight)`` delivers without blocking, or returns false untouched."""
        self.consumer = consumer
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._state = _State(consumer, quick, max_messages // 4)
        # Daemon: a consumer that is stuck must not hold up the interpreter's exit.
        self._thread = threading.Thread(target=_run, args=(self._state,), name=name, daemon=True)
        self.thread = self._thread
        weakref.finalize(self, self._state.wakes.put, False).atexit = False

    def start(self, on_end: Callable[[bool], object]) -> None:
        """Start the thread, as ``Box.start`` says."""
        self._state.on_end = on_end
        self._thread.start()

    def put(
        self,
        message: Json,
        size: int | None = None,
        *,
        only: Hashable = None,
        last: bool = False,
        flushed: bool = False,
    ) -> bool:
        """Queue a message, as ``Box.put`` says."""
        if size is None:
            size = weight(message)
        state = self._state
        with state.lock:
            if state.closed or (only is not None and only in state.kinds):
                return True
            held = len(state.waiting)
            full = held >= self._max_messages or state.bytes + size > self._max_bytes
            if full and held:  # one message larger than the bound may pass an empty box
                return False
            if only is not None:
                state.kinds.add(only)
            state.bytes += size
            state.waiting.append(_Entry(message, size, only))
            if held >= self._max_messages // 2 and not state.stuck:
                state.room.clear()
            if last:
                state.closed = True
                state.wakes.put(False)
            elif state.quick is None or not flushed:
                state.wakes.put(True)
        return True

    def flush(self) -> None:
        """Deliver what waits, here where that cannot block, else on the thread. Never blocks.

        Call it outside locks. Without ``quick`` there is nothing to do: the thread knows already.
        """
        state = self._state
        if state.quick is None:
            return
        # Again after the role was given back: who found it taken meanwhile left his to us.
        while state.waiting and state.role.acquire(blocking=False):
            try:
                done = _deliver_quickly(state, state.quick)
            finally:
                state.role.release()
            if not done:
                state.wakes.put(True)
                return

    def ease(self, seconds: float = PATIENCE) -> None:
        """Wait while the consumer is far behind, so that a busy callback does not overrun it.

        Call it outside locks, on a thread that may block. Once it has waited in vain nobody does
        until there is room again: a consumer that is stuck holds up nobody for long.
        """
        state = self._state
        if not state.room.is_set() and not state.room.wait(seconds):
            with state.lock:
                state.stuck = True
                state.room.set()

    def close(self) -> None:
        """Take no more messages; what is queued is still handed over. Never blocks."""
        self._state.room.set()
        with self._state.lock:
            if not self._state.closed:
                self._state.closed = True
                self._state.wakes.put(False)


def _run(state: _State) -> None:
    more = True
    broken = False
    while more and not broken:
        more = state.wakes.get()
        broken = not _deliver(state)
        # Who could not have the role while we delivered left its message to us.
        while not broken and state.waiting:
            broken = not _deliver(state)
    if broken:
        with state.lock:
            state.closed = True
    state.room.set()
    if state.on_end is not None:
        state.on_end(broken)


def _deliver(state: _State) -> bool:
    """Hand over what waits; return ``False`` if the consumer raised."""
    with state.role:
        while (entry := state.pop()) is not None:
            try:
                state.consumer(entry.message)
            except BaseException as error:  # user code or I/O: its connection ends, we go on
                # A peer that went away is no fault of ours; anything else deserves its trace.
                gone = isinstance(error, (BrokenPipeError, ConnectionError))
                kind = type(error).__name__
                _log.info("! a subscriber went away: %s", kind, exc_info=not gone)
                return False
    return True


def _deliver_quickly(state: _State, quick: Quick) -> bool:
    """With the role: deliver what waits; return ``False`` at the first one that might block."""
    while True:
        with state.lock:
            entry = state.waiting[0] if state.waiting else None
        if entry is None:
            return True
        if not quick(entry.message, entry.size):
            return False
        state.pop()


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


def weight_for(box: Box | None, message: object) -> int:
    """Return the weight of what may be put in a box; 0 where nobody will count it."""
    return weight(message) if box is not None and message is not None and box.counts else 0
