"""Messages that their reader comes for: a request's, or a session's, over HTTP. Floor 2.

An ``Outbox`` has a thread that hands its messages over; for each HTTP request that would be too
dear. A ``Channel`` has none: the WSGI thread that serves the request takes what is there. Bounds
and order are those of an outbox (row S20).

A channel that *keeps* remembers what it handed out, within bounds, so that a client whose stream
broke can have it once more (``replay``). One that is *lossy* has no reader for most of the time:
then, or when its reader is too slow, its oldest messages go.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable
from typing import Any, NamedTuple

from raxol_sync._deadline import now
from raxol_sync.server.outbox import MAX_BYTES, MAX_MESSAGES, PATIENCE, Box, weight

KEPT_MESSAGES = 256  # that were handed out, for a replay
KEPT_BYTES = 2**20  # as ``weight`` counts them
LOSSY_MESSAGES = 256  # that wait without a reader
DEFAULT_RETRY = 1.0  # seconds until a client should come back to its stream


class Item(NamedTuple):
    """One message with its number in the channel, from 1."""

    number: int
    message: Any
    size: int
    only: Hashable


class Channel(Box):
    """A bounded queue with at most one reader at a time. Thread-safe."""

    def __init__(
        self,
        *,
        own: bool = True,
        keeps: bool = False,
        lossy: bool = False,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.own = own
        self.keeps = keeps
        # Most channels see one message, the response: it needs no weighing.
        self.counts = keeps or not own
        self.pollable = False  # its client comes back to a stream that is closed early
        self.emptied = False  # what it held was given up for others': nobody can come back to it
        self._lossy = lossy
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        # Guards: everything below, and the readers' states. Leaf; taken under the server's lock.
        self._lock = threading.Lock()
        self._waiting: deque[Item] = deque()
        self._bytes = self._kept_bytes = self._count = 0
        self._kept: deque[Item] = deque()
        self._kinds: set[Hashable] = set()
        self._closed = False
        self._reader: Reader | None = None
        # While callbacks wait for the reader; set, they do so no more until it has come.
        self._room: threading.Event | None = None

    # ------------------------------------------------------------ the server's side

    def put(
        self,
        message: Any,
        size: int | None = None,
        *,
        only: Hashable = None,
        last: bool = False,
        flushed: bool = False,
    ) -> bool:
        """Queue a message, as ``Box.put`` says. A lossy one always has room."""
        if size is None:
            size = weight(message)
        with self._lock:
            if self._closed or (only is not None and only in self._kinds):
                return True
            waiting = self._waiting
            if waiting and not self._make_room(len(waiting), size):
                return False
            if only is not None:
                self._kinds.add(only)
            self._count += 1
            self.counts = True  # a second one follows, or this was the last
            self._bytes += size
            waiting.append(Item(self._count, message, size, only))
            if last:
                self._closed = True
            if self._reader is not None and not flushed:
                self._reader.wake()
        return True

    def flush(self) -> None:
        """Wake the reader, if there is something for it."""
        with self._lock:
            if self._reader is not None and (self._waiting or self._closed):
                self._reader.wake()

    def _make_room(self, held: int, size: int) -> bool:
        """Return whether one more message may wait. Needs the lock."""
        bound = LOSSY_MESSAGES if self._lossy and self._reader is None else self._max_messages
        if held < bound and self._bytes + size <= self._max_bytes:
            return True
        if not self._lossy:
            return False
        if self._reader is not None:  # it does not read what it is sent: its stream ends
            self._reader.displace()
            self._leave()
        while self._waiting and (
            len(self._waiting) >= LOSSY_MESSAGES or self._bytes + size > self._max_bytes
        ):
            self._drop_oldest()
        return True

    def _drop_oldest(self) -> None:
        item = self._waiting.popleft()
        self._bytes -= item.size
        self._kinds.discard(item.only)

    def close(self) -> None:
        """Take no more messages; what waits is still handed out."""
        with self._lock:
            self._closed = True
            if self._room is not None:
                self._room.set()
            if self._reader is not None:
                self._reader.wake()

    def ease(self, seconds: float = PATIENCE) -> None:
        """Wait for the reader while half of what may wait does; once in vain, no more."""
        with self._lock:
            far = len(self._waiting) > self._max_messages // 2
            if not far or self._closed or self._reader is None:
                return
            room = self._room = self._room or threading.Event()
        if not room.wait(seconds):
            room.set()

    # ------------------------------------------------------------ the reader's side

    def attach(self, *, after: int | None = None) -> Reader:
        """Return a reader; the one before reads nothing more.

        ``after``: begin with the messages that follow this number, as far as they are kept.
        """
        reader = Reader(self)
        with self._lock:
            if self._reader is not None:
                self._reader.displace()
            self._reader = reader
            if after is not None:
                self._rewind(after)
        return reader

    def _rewind(self, after: int) -> None:
        while self._kept and self._kept[-1].number > after:
            item = self._kept.pop()
            self._kept_bytes -= item.size
            self._waiting.appendleft(item)
            self._bytes += item.size

    def detach(self, reader: Reader) -> None:
        """Have this reader read no more, if it still is the one."""
        with self._lock:
            if self._reader is reader:
                self._leave()
            reader.displace()

    def _leave(self) -> None:
        """Note that nobody reads any more: nobody should wait for that. Needs the lock."""
        self._reader = None
        if self._room is not None:
            self._room.set()
            self._room = None

    def taken(self, reader: Reader) -> list[Item] | None:
        """Hand out all that waits: ``[]`` if nothing does, ``None`` if nothing more will come."""
        with self._lock:
            if reader.displaced:
                return None
            if not self._waiting:
                return None if self._closed else []
            items = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
            if self._kinds:
                self._kinds.clear()
            if self._room is not None:
                self._room.set()
                self._room = None
            if self.keeps:
                self._keep(items)
            if self._closed:
                self._reader = None  # it will find the end; the two need not hold each other
            return items

    def _keep(self, items: list[Item]) -> None:
        kept = self._kept
        kept.extend(items)
        self._kept_bytes += sum(item.size for item in items)
        while kept and (len(kept) > KEPT_MESSAGES or self._kept_bytes > KEPT_BYTES):
            self._kept_bytes -= kept.popleft().size

    def keep(self, items: list[Item]) -> None:
        """Begin to keep, with these that were handed out before."""
        with self._lock:
            self.keeps = self.counts = True
            self._keep(items)

    def empty(self) -> None:
        """Forget all that it holds; a reader that has not ended may still come for its end."""
        with self._lock:
            self._waiting.clear()
            self._kept.clear()
            self._kinds.clear()
            self._bytes = self._kept_bytes = 0
            self.emptied = True

    def interrupt(self, retry: float | None) -> None:
        """Have the reader's stream end here; its client comes back after ``retry`` seconds."""
        with self._lock:
            if self._reader is not None:
                self._reader.retry = DEFAULT_RETRY if retry is None else retry
                self._reader.displace()
                self._leave()

    @property
    def ended(self) -> bool:
        """Whether all was handed out and nothing more will come."""
        return self._closed and not self._waiting

    @property
    def closed(self) -> bool:
        """Whether nothing more will be put in."""
        return self._closed

    @property
    def held(self) -> int:
        """How much it holds, as ``weight`` counts it."""
        return self._bytes + self._kept_bytes


class Reader:
    """One thread's right to take a channel's messages. Used by that thread, but for ``wake``."""

    __slots__ = ("_channel", "_gate", "displaced", "retry")

    def __init__(self, channel: Channel) -> None:
        # A lock as a gate: taken while there is nothing to look for; released under the channel's.
        self._gate = threading.Lock()
        self._gate.acquire()
        self._channel = channel
        self.displaced = False
        self.retry: float | None = None  # where its stream was interrupted: when to come back

    def take(self, seconds: float) -> list[Item] | None:
        """Return what waits, waiting for it so long; ``[]``: nothing; ``None``: it is the end."""
        due = 0.0
        while True:
            items = self._channel.taken(self)
            if items is None or items:
                return items
            moment = now()
            if not due:
                due = moment + seconds
            left = due - moment
            if left <= 0 or not self._gate.acquire(timeout=left):
                return []

    def stop(self) -> None:
        """Let ``take`` return ``None``, now and later. From any thread."""
        self._channel.detach(self)

    def wake(self) -> None:
        """Have ``take`` look again. Needs the channel's lock."""
        if self._gate.locked():
            self._gate.release()

    def displace(self) -> None:
        """Let it read nothing more. Needs the channel's lock."""
        self.displaced = True
        self.wake()
